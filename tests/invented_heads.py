"""Invented heads on disk: what training leaves, with numbers of the test's choosing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
from safetensors.torch import save_file

from pipeline.heads import pooling

ADOPT, TRIPLET = {"name": "adopt"}, {"name": "triplet"}


def head(
    folder: Path,
    name: str,
    rsums: list[float],
    *,
    recipe: str = "vse2ad",
    feature: str = "region",
    seed: int = 0,
    objective: dict[str, Any] = ADOPT,
    image: dict[str, Any] | None = None,
    text: dict[str, Any] | None = None,
    epochs: int | None = None,
    trained: bool = True,
    origin: str | None = None,
    negatives: list[list[float]] | None = None,
) -> Path:
    """A head whose RSUM on val went as given; `epochs` that it should have trained, by default as many. With an
    `origin` it was trained elsewhere, and has no history. negatives: K of each step of each epoch, by default of one.
    """
    poolings = {"image_pooling": image or {"name": "adpool"}, "text_pooling": text or {"name": "adpool"}}
    place = folder / name
    place.mkdir(parents=True)
    description = {
        "dataset": "sample", "feature": feature, "text": "bigru", "recipe": recipe, "seed": seed,
        "recipe_settings": {**poolings, "objective": objective, "learning_rate": 5e-4},
        "training": {"dimension": 8, "batch_size": 64, "epochs": epochs or len(rsums)},
        "manifest": "m", "store": f"s-{feature}", "width": 16, "vocabulary": "v",
        "features": {"recipe": f"{feature}-butd", "engine": "butd", "weights": "w", "trained": trained},
    }
    if origin:
        description["origin"] = {"file": origin}
    (place / "head.json").write_text(json.dumps(description))
    rows = [{"epoch": e, "loss": 1.0, "negatives": 63.0 - e, "RSUM": rsum} for e, rsum in enumerate(rsums)]
    if not origin:
        pd.DataFrame(rows).to_csv(place / "history.csv", index=False)
        every = negatives or [[63.0 - e] for e in range(len(rsums))]
        steps = [{"epoch": e, "step": step, "negatives": k} for e, ks in enumerate(every) for step, k in enumerate(ks)]
        pd.DataFrame(steps).to_csv(place / "steps.csv", index=False)
    tensors = {}
    for side, setting in poolings.items():
        options = {key: value for key, value in setting.items() if key != "name"}
        module = pooling.build(setting["name"], 8, **options)
        tensors |= {f"{side}.{key}": value for key, value in module.state_dict().items()}
    save_file(tensors, place / "best.safetensors", metadata={"epoch": "0"})
    return place

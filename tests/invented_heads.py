"""Invented heads on disk: what training leaves, with numbers of the test's choosing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from safetensors.torch import save_file

from pipeline.foundation import settings
from pipeline.foundation.artefacts import record as records
from pipeline.foundation.settings import Recipe
from pipeline.make.heads import pooling
from pipeline.make.training import HeadFacts, TrainRequest

SETTINGS = settings.load(Path(__file__).parents[1] / "params.yaml")

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
    """A head whose RSUM on val went as given; `epochs` that it should have trained, by default as
    many. With an `origin` it was trained elsewhere, and has no history. negatives: K of each step
    of each epoch, by default of one.
    """
    poolings = {
        "image_pooling": image or {"name": "adpool"},
        "text_pooling": text or {"name": "adpool"},
    }
    place = folder / name
    place.mkdir(parents=True)
    known = (
        SETTINGS.recipe("vse2ad").model_dump()
        | poolings
        | {"objective": objective, "learning_rate": 5e-4}
    )
    sizes = SETTINGS.training_of("sample").model_copy(
        update={
            "dimension": 8,
            "batch_size": 64,
            "epochs": epochs or len(rsums),
            "minimum_count": 1,
            "steps": None,
        }
    )
    request = TrainRequest.of(recipe, feature, "bigru", seed, Recipe.model_validate(known), sizes)
    image_network = {"engine": "butd"} if trained else {"engine": "butd", "weights": "untrained"}
    facts = HeadFacts.model_validate(
        {
            "width": 16,
            "vocabulary": "v",
            "networks": {"image": image_network, "text": {}},
            "store": f"s-{feature}",
            "features": {
                "recipe": f"{feature}-butd",
                "engine": "butd",
                "weights": "w",
                "trained": trained,
            },
            "origin": {"file": origin, "sha256": "o"} if origin else None,
        }
    )
    made_from = {"manifest": records.Reference(kind="manifest", name="sample", identity="m")}
    rows = [
        {"epoch": e + 1, "loss": 1.0, "negatives": 63.0 - e, "RSUM": rsum}
        for e, rsum in enumerate(rsums)
    ]
    if not origin:
        pd.DataFrame(rows).to_csv(place / "history.csv", index=False)
        every = negatives or [[63.0 - e] for e in range(len(rsums))]
        steps = [
            {"epoch": e, "step": step, "negatives": k}
            for e, ks in enumerate(every, start=1)
            for step, k in enumerate(ks, start=1)
        ]
        pd.DataFrame(steps).to_csv(place / "steps.csv", index=False)
    tensors = {}
    for side, setting in poolings.items():
        options = {key: value for key, value in setting.items() if key != "name"}
        module = pooling.build(setting["name"], 8, **options)
        tensors |= {f"{side}.{key}": value for key, value in module.state_dict().items()}
    save_file(tensors, place / "best.safetensors", metadata={"epoch": "1"})
    records.save(
        place,
        records.Record(
            kind="head",
            request=request.recorded(),
            made_from=made_from,
            contents=records.contents(place),
            facts=facts.model_dump(mode="json"),
            finished=origin is not None or len(rsums) >= sizes.epochs,
        ),
    )
    return place

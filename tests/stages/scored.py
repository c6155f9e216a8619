"""A run's checkpoints and similarity stores made by hand, by the working directory: no network is
trained for them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import invented_facts
import numpy as np
import saved

from pipeline.foundation.evaluation.retrieval import Embeddings
from pipeline.foundation.settings.paths import Paths

IMAGES, CAPTIONS = 12, 5


def made_from(
    feature: str, checkpoint: str, seed: int = 0, settings: dict[str, Any] | None = None
) -> dict[str, Any]:
    head = f"vse2ad-{feature}-bigru-s{seed}"
    member = {
        "head": head,
        "checkpoint": checkpoint,
        "store": "f" * 64,
        "weights": "w" * 64,
        "feature": feature,
        "features": f"{feature}-engine",
        "vocabulary": "v" * 64,
        "networks": {"image": {"format": "scan"}, "text": {}},
        "settings": {"learning_rate": 5e-4, "epochs": 3} | (settings or {}),
    }
    return invented_facts.of_head(seed=seed, manifest="m" * 64, member=member).recorded()


def score(
    feature: str,
    noise: float = 1.0,
    seed: int = 0,
    content: bytes = b"head",
    without: tuple[int, ...] = (),
    settings: dict[str, Any] | None = None,
    **changes: Any,
) -> Path:
    """What `pipeline train` and `pipeline score` leave, by the working directory: a checkpoint, a
    similarity store.

    Image ids are 10, 20, …; caption ids 100, 101, …; `without` leaves out images by row.
    """
    generator = np.random.default_rng([seed, *feature.encode()])
    images = np.random.default_rng(1).standard_normal((IMAGES, 8)).astype(np.float32)
    captions = np.repeat(images, CAPTIONS, 0) + noise * generator.standard_normal(
        (IMAGES * CAPTIONS, 8)
    )
    rows = np.setdiff1d(np.arange(IMAGES), without)
    columns = np.flatnonzero(np.isin(np.arange(IMAGES * CAPTIONS) // CAPTIONS, rows))
    made = made_from(feature, hashlib.sha256(content).hexdigest(), seed, settings) | changes
    name = made["member"]["head"]
    head = Path("heads", made["dataset"], name)
    head.mkdir(parents=True, exist_ok=True)
    (head / "best.safetensors").write_bytes(content)
    path = Paths(Path()).similarity(made["dataset"], name, made["split"])
    vectors = images[rows], captions.astype(np.float32)[columns]
    saved.save(
        path,
        [Embeddings(*vectors, double=True)],
        10 * (rows + 1),
        columns + 100,
        np.searchsorted(rows, columns // CAPTIONS),
        made,
        image_embeddings=vectors[0],
        caption_embeddings=vectors[1],
    )
    return path

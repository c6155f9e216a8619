"""Invented entries of `results/metrics.json`."""

from __future__ import annotations

from typing import Any

LETTERS = {"region": "R", "grid": "G", "patch": "P"}


def system(
    dataset: str,
    protocol: str,
    *,
    recipe: str = "vse2ad",
    ensemble: str | None = "R",
    features: dict[str, str] | None = None,
    text: str = "bigru",
    seed: int = 0,
    split: str = "test",
    untrained: list[str] | None = None,
    manifest: str = "0123456789abcdef",
    r1: float = 50.0,
    images: int = 1000,
    captions: int = 5000,
) -> dict[str, Any]:
    """One system under a name of its own, with recalls of r1, r1 + 5 and r1 + 10 both ways."""
    features = features or {"region": "butd-36"}
    side = {"r1": r1, "r5": r1 + 5, "r10": r1 + 10, "median_rank": 1.0, "mean_rank": 2.0}
    scores = {
        "i2t": side,
        "t2i": side,
        "rsum": 6 * r1 + 30,
        "images": images,
        "captions": captions,
        "tied": {"i2t": 0, "t2i": 0},
        "protocol": protocol,
    }
    made_from = {
        "dataset": dataset,
        "split": split,
        "recipe": recipe,
        "ensemble": ensemble,
        "features": features,
        "text": text,
        "seed": seed,
        "untrained": untrained or [],
        "manifest": manifest,
        "members": [],
    }
    name = f"{recipe}-{ensemble or '-'.join(features)}-{text}-s{seed} {dataset}"
    return {name: {"made_from": made_from, protocol: scores}}

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


def everything() -> dict[str, Any]:
    """Systems of every recipe that a table knows, on benchmarks and on other data."""
    papers = {"region": "butd-10-100", "grid": "butd-grid", "patch": "vit_base_patch16_224"}
    small = {"region": "pyramid36-small", "grid": "grid16-small", "patch": "patch-small"}
    found: dict[str, Any] = {}
    for ensemble in ("R", "RG", "RGP"):
        parts = list(papers)[: len(ensemble)]
        for recipe in ("vse2ad", "vse_infty", "vse_pp", "my_own"):
            for text in ("bigru", "bert"):
                asked = {"recipe": recipe, "ensemble": ensemble, "text": text}
                coco = system("coco", "coco_1k_5fold", features={f: papers[f] for f in parts}, **asked)
                five = system("coco", "coco_5k", features={f: papers[f] for f in parts}, **asked)
                for name, entry in coco.items():
                    entry["coco_5k"] = five[name]["coco_5k"]
                found |= coco
                stand_ins = {f: small[f] for f in parts}
                untrained = [f for f in parts if f == "patch"]
                for seed in (0, 1):
                    found |= system(
                        "sample", "all", features=stand_ins, untrained=untrained, seed=seed, **asked
                    )
    for ending in ("notok", "noemb", "noadpool", "noadopt", "gpo", "my_pool", "w25", "w50", "w75", "random"):
        found |= system("coco", "coco_5k", recipe=f"vse2ad-{ending}")
        found |= system("sample", "all", recipe=f"vse2ad-{ending}", features={"region": "pyramid36-small"})
    return found

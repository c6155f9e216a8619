"""A run on disk as `pipeline` leaves it, in a moment: manifest, photographs, stores, heads and
scores, all invented.

Its texts are hostile: a caption that is a script, file names that would be mark-up, a reason that
would be a cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import invented_facts
import numpy as np
import pandas as pd
import saved
from invented_heads import head
from new_stores import prepare
from PIL import Image

from pipeline.foundation.evaluation.retrieval import as_similarity
from pipeline.foundation.files.digest import sha256
from pipeline.foundation.manifest import Manifest
from pipeline.judge.systems.scores.fuse import fuse
from pipeline.judge.systems.scores.made import Made
from pipeline.judge.systems.scores.system import System
from pipeline.make.features.store.layout import StoreLayout
from pipeline.make.training.artefact import HeadArtefact

CAPTIONS = [
    "<script>document.title = 'taken'</script>",
    "</script><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }} and ${7 * 7}",
    'a dog\'s "quoted" & ampersanded <b>bone</b>',
    "\u2028 line and \u2029 paragraph",
    "中文, עברית and \u202eturned",
]
FILES = [
    "plain.png",
    "<img src=x onerror=alert(1)>.png",
    "quote\"'&.png",
    "a b.png",
    "</script>.png",
    "é中.png",
]
ENGINES = {"region": "butd-36", "grid": "grid16-butd_resnet101", "patch": "patch-small"}
FEATURES = tuple(ENGINES)
EACH = 2  # captions an image


def make(root: Path, images: int = 6, languages: Sequence[str] = ()) -> Manifest:
    """Everything that `pipeline evaluate` and what follows it read, below a root; data set
    `sample`, split test.
    """
    manifest = _manifest(root, images, languages)
    generator = np.random.default_rng(0)
    owner = np.repeat(np.arange(images), EACH)
    stores = {}
    for number, feature in enumerate(FEATURES):
        name = f"vse2ad-{feature}-bigru-s0"
        rsums = [100.0, 200.0 + number]
        folder = head(
            root / "heads" / "sample", name, rsums, feature=feature, trained=feature != "patch"
        )
        noise = generator.standard_normal((images, images * EACH))
        scores = (
            (owner[None] == np.arange(images)[:, None]) + (0.3 + 0.4 * number) * noise
        ).astype(np.float32)
        member = {
            "head": name,
            "checkpoint": sha256(folder / "best.safetensors"),
            "store": "s",
            "weights": "w",
            "feature": feature,
            "features": ENGINES[feature],
            "vocabulary": "v",
            "settings": {"dimension": 8},
            "networks": {
                "image": {"engine": "patch", "weights": "untrained"}
                if feature == "patch"
                else {"format": "scan"},
                "text": {},
            },
        }
        stores[feature] = _save(
            root,
            manifest,
            name,
            scores,
            [member],
            None,
            {feature: ENGINES[feature]},
            made_by=folder,
        )
        _features(root, manifest, feature)
    for ensemble, features in {"R": FEATURES[:1], "RG": FEATURES[:2], "RGP": FEATURES}.items():
        parts = [System.open(stores[feature]) for feature in features]
        fused = fuse(parts).scores
        members = [member for part in parts for member in part.made_from.members]
        fusion = {
            "features": list(features),
            "method": "mean",
            "weights": [1 / len(parts)] * len(parts),
            "members": [part.name for part in parts],
        }
        _save(
            root,
            manifest,
            f"vse2ad-{ensemble}-bigru-s0",
            fused,
            members,
            ensemble,
            {feature: ENGINES[feature] for feature in features},
            fusion,
            parts,
        )
    return manifest


def _manifest(root: Path, images: int, languages: Sequence[str]) -> Manifest:
    folder = root / "photographs"
    folder.mkdir(parents=True)
    files = [FILES[number] if number < len(FILES) else f"{number}.png" for number in range(images)]
    for number, name in enumerate(files):
        if "/" not in name:  # a slash is no file's: this photograph is one that is gone
            Image.new("RGB", (60, 40), (40 * (number % 6), 90, 120)).save(folder / name)
    texts = CAPTIONS + [
        f"caption number {number}" for number in range(len(CAPTIONS), images * EACH)
    ]
    rows = [
        {
            "image_id": 10 * image,
            "file": files[image],
            "bytes": 1,
            "split": "test",
            "caption_id": 100 + caption,
            "caption": texts[caption],
        }
        | ({"language": languages[caption % len(languages)]} if languages else {})
        for caption in range(images * EACH)
        for image in [caption // EACH]
    ]
    manifest = Manifest(pd.DataFrame(rows), "sample", folder)
    manifest.save(root / "data" / "sample.parquet")
    return manifest


def _save(
    root: Path,
    manifest: Manifest,
    name: str,
    scores: object,
    members: Sequence[Any],
    ensemble: str | None,
    features: dict[str, str],
    fusion: dict[str, Any] | None = None,
    parts: Sequence[System] = (),
    made_by: Path | None = None,
) -> Path:
    split = manifest.split("test")
    data = {"manifest": manifest.digest, "languages": manifest.languages}
    untrained = [each for each in features if each == "patch"]
    made_from: Made
    if ensemble is None:
        (member,) = members
        made_from = invented_facts.of_head(member=member, is_untrained=bool(untrained), **data)
    else:
        made_from = invented_facts.ensemble(
            ensemble, members, features=features, untrained=untrained, fusion=fusion, **data
        )
    inputs = (
        {"head": HeadArtefact.open(made_by).reference}
        if made_by
        else {f"member.{number}": part.reference for number, part in enumerate(parts)}
    )
    path = root / "similarities" / "sample" / f"{name}.zarr"
    saved.save(
        path,
        [as_similarity(scores)],
        split.image_ids,
        split.caption_ids,
        split.caption_image,
        made_from,
        made_from=inputs,
    )
    return path


def _features(root: Path, manifest: Manifest, feature: str) -> None:
    """A store's description and its failures.csv, with no features in it."""
    path = root / "features" / "sample" / f"{feature}.zarr"
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = manifest.images["image_id"].to_numpy()
    fingerprint = {"recipe": "butd", "ids": manifest.images_digest}
    prepare(path, StoreLayout(len(ids), 9, 4, 2), fingerprint, ids, np.zeros(len(ids), np.int64))
    failed = (
        '4,"</script>.png","not an image <b>or</b> of an unknown format"\n'
        if feature == "grid"
        else ""
    )
    (path / "failures.csv").write_text("row,file,reason\n" + failed, encoding="utf-8")

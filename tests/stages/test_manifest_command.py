"""`pipeline manifest` again: nothing is read where nothing changed, and what changed is seen."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.foundation.files import remembered
from pipeline.foundation.manifest import photographs

pytestmark = pytest.mark.slow

MANIFEST = Path("data/sample.parquet")


def another_photograph(sample: Path) -> None:
    """Of the same size and date, moved to the place of one that is there."""
    file = min((sample / "images").iterdir())
    before, other = file.stat(), sample / "other"
    other.write_bytes(file.read_bytes()[:-1] + b"x")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)


def another_caption(sample: Path) -> None:
    listing = sample / "dataset_sample.json"
    listing.write_text(
        listing.read_text(encoding="utf-8").replace('"raw": "', '"raw": "Also: '), encoding="utf-8"
    )


@pytest.mark.specification
@pytest.mark.parametrize(
    "change", [another_photograph, another_caption, lambda sample: MANIFEST.write_bytes(b"")]
)
def test_what_changed_is_seen_and_nothing_else_is_read(
    pipeline: Any, corpus: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    for module in (remembered, photographs):
        monkeypatch.setattr(module, "SETTLED", -(10**12))  # files count as written long ago
    sample = shutil.copytree(corpus, Path("data", "sample"))
    assert "24 images" in pipeline("manifest", "sample")[1]
    assert pipeline("manifest", "sample")[1] == f"{MANIFEST}: nothing to do\n"
    before = MANIFEST.read_bytes()
    change(sample)
    assert "24 images" in pipeline("manifest", "sample")[1]
    assert (MANIFEST.read_bytes() == before) == (
        change not in (another_photograph, another_caption)
    )
    assert pipeline("manifest", "sample")[1] == f"{MANIFEST}: nothing to do\n"


def test_a_manifest_elsewhere_is_remembered_beside_it(
    pipeline: Any, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (remembered, photographs):
        monkeypatch.setattr(module, "SETTLED", -(10**12))  # files count as written long ago
    shutil.copytree(corpus, Path("data", "sample"))
    command = ("manifest", "sample", "--out", "elsewhere/mine.parquet")
    code, said, _ = pipeline(*command)
    assert code == 0
    assert "24 images" in said
    assert pipeline(*command)[1] == "elsewhere/mine.parquet: nothing to do\n"
    assert not Path("data", ".sample").exists()


def test_what_was_written_just_now_is_looked_at_again(pipeline: Any, corpus: Path) -> None:
    shutil.copytree(corpus, "data/sample", copy_function=shutil.copyfile)
    for _ in range(2):
        assert "24 images" in pipeline("manifest", "sample")[1]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (0, "as the card manifests/own.yaml says: images (train, test); captions (train)\n"),
        (1, "note: not as the card manifests/own.yaml says: train: images: expected {}, found "),
        (1, "as the card manifests/own.yaml says: images (test); captions (train)\n"),
    ],
)
def test_a_copy_is_compared_with_its_card(
    pipeline: Any, corpus: Path, more: int, said: str
) -> None:
    listing = json.loads((corpus / "dataset_sample.json").read_text(encoding="utf-8"))["images"]
    of = {
        split: [image for image in listing if image["split"] == split]
        for split in ("train", "test")
    }
    train = len(of["train"]) + more
    shutil.copytree(corpus, "data/sample")
    Path("manifests").mkdir()
    Path("manifests", "own.yaml").write_text(
        f"""
        title: Own
        description: mine
        licence: mine
        source: mine
        images: data/sample/images
        annotations: data/sample/dataset_sample.json
        protocols: [all]
        unstated: copies differ
        statistics:
          train: {{images: {train}, captions: {sum(len(image["sentences"]) for image in of["train"])}}}
          test: {{images: {len(of["test"])}}}
        """,
        encoding="utf-8",
    )
    code, out, err = pipeline("manifest", "own")
    assert code == 0
    assert said.format(train) in out + err
    assert (
        "not compared: captions (test); unique captions, characters of the shortest caption, characters of the "
        "longest caption (train, test): copies differ\n"
    ) in out + err


def test_a_built_in_card_is_named_as_one_and_one_image_is_one(pipeline: Any, corpus: Path) -> None:
    Path("captions.csv").write_text(
        "image,caption,language\none.png,Ein Hund.,de\n", encoding="utf-8"
    )
    Path("images").mkdir()
    shutil.copy(min((corpus / "images").iterdir()), "images/one.png")
    code, out, err = pipeline(
        "manifest",
        "flickr8k",
        "--images",
        "images",
        "--annotations",
        "captions.csv",
        "--format",
        "csv",
    )
    assert code == 0
    assert "Flickr8k: 1 image (test 1), 1 caption (de 1), digest" in out
    assert (
        err.count("not as the built-in card flickr8k says: ") == 1
    )  # seven differences on one line
    assert "; languages: expected en, found de\n" in err


def test_splits_are_drawn_where_the_annotations_name_none(
    pipeline: Any, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (photographs, remembered):
        monkeypatch.setattr(module, "SETTLED", -(10**12))  # files count as written long ago
    names = sorted(file.name for file in (corpus / "images").iterdir())
    rows = "".join(f"{name},Shapes.\n" for name in names)
    Path("captions.csv").write_text(f"image,caption\n{rows}", encoding="utf-8")
    given = ("manifest", "mine", "--images", corpus / "images", "--annotations", "captions.csv")
    assert "--draw-splits draws splits" in pipeline(*given)[2]
    assert "24 images (train 20, val 2, test 2)" in pipeline(*given, "--draw-splits")[1]

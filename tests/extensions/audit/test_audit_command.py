"""`pipeline audit`, and what a card says of the splits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import foreign
import pandas as pd
import pytest

from pipeline.extensions.audit import stage
from pipeline.foundation.manifest import Manifest

pytestmark = pytest.mark.slow

HEAD = "vse2ad-region-bigru-s0"


@pytest.fixture
def copied(project: Path, scenes: Manifest) -> Manifest:
    """The sample once more as another data set, all of it in test."""
    table = scenes.table.copy()
    table["split"] = "test"
    other = Manifest(table, "other", scenes.images_folder)
    other.save(project / "data" / "other.parquet")
    return other


@pytest.mark.specification
@pytest.mark.usefixtures("copied")
def test_shared_photographs_end_with_1_and_are_named(pipeline: Any, scenes: Manifest) -> None:
    code, out, _ = pipeline("audit", "sample:train", "other")
    train = len(scenes.split("train").image_ids)
    assert code == 1
    assert f"{train} of {train} images of sample:train (train) are images of other (test)" in out
    said = json.loads(Path("results/audit-sample-train-other.json").read_text())
    assert len(said["certain"]) == train
    assert {pair["by"] for pair in said["certain"]} == {"content"}
    assert "side by side" in out


@pytest.mark.usefixtures("project")
def test_the_samples_splits_share_nothing(pipeline: Any, refused: Callable[..., str]) -> None:
    code, out, _ = pipeline("audit", "sample")
    assert (code, out.splitlines()[0]) == (0, "no image occurs twice")
    assert "expected a split of train, val, test" in refused("audit", "sample:dev")
    assert "did you mean sample?" in refused("audit", "sampel")
    assert "ends in .html" in refused("audit", "sample", "--out", "x.json")
    assert "hold the same images by definition" in refused("audit", "sample", "sample:test")
    assert "hold the same images by definition" in refused("audit", "sample:test", "sample:test")
    assert pipeline("audit", "sample:test", "sample:train")[0] == 0
    Path("file").touch()  # exit code 1 would say that photographs are shared
    assert "file is a file, and no folder can be made there" in refused(
        "audit", "sample", "--out", "file/x.html"
    )


@pytest.mark.usefixtures("project")
def test_a_card_says_what_the_splits_share(pipeline: Any) -> None:
    assert pipeline("evaluate", f"similarities/sample/{HEAD}.zarr", "--card", "card.html")[0] == 0
    card = Path("card.html").read_text(encoding="utf-8")
    assert "<p>No image occurs twice.</p>" in card
    assert "<p>Further pairs that look alike: 0.</p>" in card


def test_a_card_of_many_images_names_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "MOST", 7)
    assert stage.across_splits(foreign.manifest(8, 1)) == [
        "Not compared: coco has more than 7 images; see `pipeline audit coco`."
    ]


@pytest.mark.parametrize(("images", "most", "compared"), [(8, 8, True), (8, 7, False)])
def test_as_many_images_as_are_compared_at_most_are_compared(
    images: int, most: int, compared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "MOST", most)
    lines = stage.across_splits(foreign.manifest(images, 1))
    assert lines[0].startswith("Not compared") != compared


@pytest.mark.parametrize(("splits", "code"), [("train train", 0), ("train test", 1)])
def test_copies_within_a_split_are_no_leak(
    splits: str, code: int, pipeline: Any, project: Path, scenes: Manifest
) -> None:
    """The sample's first image is in a data set twice: in one split, or in two."""
    table = scenes.table[scenes.table["image_id"] == scenes.table["image_id"].iloc[0]]
    again = table.assign(image_id=-1, caption_id=range(-len(table), 0))
    both = pd.concat(
        [
            part.assign(split=split)
            for part, split in zip((table, again), splits.split(), strict=True)
        ]
    )
    Manifest(both, "twice", scenes.images_folder).save(project / "data" / "twice.parquet")
    found, out, _ = pipeline("audit", "twice")
    assert found == code, out
    assert f"images of twice ({splits.split()[1]})" in out

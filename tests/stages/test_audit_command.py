"""`pipeline audit`, and the warning of `pipeline evaluate` for a head that was trained on the
pool.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import saved

from pipeline.foundation.evaluation.retrieval.collection import Collection
from pipeline.foundation.manifest import Manifest
from pipeline.judge.systems.scores.system import System

HEAD = "vse2ad-region-bigru-s0"


@pytest.fixture
def copied(project: Path, scenes: Manifest) -> Manifest:
    """The sample once more as another data set, all of it in test."""
    table = scenes.table.copy()
    table["split"] = "test"
    other = Manifest(table, "other", scenes.images_folder)
    other.save(project / "data" / "other.parquet")
    return other


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


def test_a_head_that_was_trained_on_the_pool_is_warned_of(
    pipeline: Any, project: Path, scenes: Manifest
) -> None:
    renamed = scenes.table.copy()
    renamed["file"] = [f"{1000000 + image}.jpg" for image in renamed["image_id"]]
    Manifest(renamed, "flickr", scenes.images_folder).save(project / "data" / "flickr.parquet")
    own = System.open(Path("similarities/sample", f"{HEAD}.zarr"))
    table = renamed.copy()
    table["split"] = "test"
    table["file"] = [f"{1000000 + image}_0123456789.jpg" for image in renamed["image_id"]]
    Manifest(table, "zero", scenes.images_folder).save(project / "data" / "zero.parquet")
    ids, vectors = scenes.split("train"), own.embeddings()
    count = len(own.image_ids)
    columns = [column for column, image in enumerate(ids.caption_image) if image < count]
    made = own.made_from.changed(dataset="zero", trained_on="flickr", split="test")
    path = Path("embeddings/zero/x.zarr")
    path.parent.mkdir(parents=True)
    part = Collection(ids.image_ids[:count], ids.caption_ids[columns], ids.caption_image[columns])
    with saved.writing_vectors(path, [part], vectors.images.shape[1], made) as (images, captions):
        images[:], captions[:] = vectors.images, vectors.captions[: len(columns)]
    code, _, err = pipeline("evaluate", "--system", path)
    assert code == 0, err
    assert f"was trained on {count} of these {count} photographs" in err
    shutil.rmtree("data")
    assert "was trained on" not in pipeline("evaluate", "--system", path)[2]

"""`pipeline evaluate` warns of a head that was trained on the pool."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import saved

from pipeline.foundation.evaluation.retrieval.collection import Collection
from pipeline.foundation.manifest import Manifest
from pipeline.judge.systems.scores.system import System

pytestmark = pytest.mark.slow

HEAD = "vse2ad-region-bigru-s0"


@pytest.mark.specification
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

"""Extraction from tars and Parquet equals that from files; what has no image or no caption is
said.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import packed
import pyarrow as pa
import pytest
from pyarrow import parquet

from pipeline.foundation.manifest import Manifest, build
from pipeline.make.features import extraction
from pipeline.make.features.store import FeatureStore

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("pack", [packed.tars, packed.parquets])
def test_extraction_from_packed_images_equals_that_from_files(
    pack: Callable[[Manifest, Path], Manifest],
    scenes: Manifest,
    job: extraction.ExtractionJob,
    tmp_path: Path,
) -> None:
    made = pack(scenes, tmp_path / "packed")
    for column in ("image_id", "split", "bytes"):
        assert made.images[column].tolist() == scenes.images[column].tolist(), column
    assert made.table["caption"].tolist() == scenes.table["caption"].tolist()
    made.save(tmp_path / "data" / "packed.parquet")
    loaded = Manifest.load(tmp_path / "data" / "packed.parquet")
    extraction.extract(job)
    other = replace(
        job, manifest=loaded, images_folder=loaded.images_folder, store=tmp_path / "packed.zarr"
    )
    extraction.extract(other)
    assert extraction.extract(other).extracted == 0
    images = np.arange(len(made.images))
    one, two = FeatureStore(job.store).require(scenes), FeatureStore(other.store).require(loaded)
    assert np.array_equal(one.read(images)[0], two.read(images)[0])
    assert one.content(images) == two.content(images)


def test_images_without_captions_are_left_out(tmp_path: Path) -> None:
    parquet.write_table(
        pa.table({"jpg": [b"x", b"y"], "caption": ["a", " "]}), tmp_path / "0.parquet"
    )
    made = build("mine", tmp_path, tmp_path)
    assert (len(made.images), made.left_out) == (1, {"no caption": 1})

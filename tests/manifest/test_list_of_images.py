"""The list of images is read from beside the manifest as long as the manifest is unchanged, and
from its rows else.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from pipeline.foundation.files import remembered
from pipeline.foundation.manifest import Manifest, table
from pipeline.foundation.manifest.cache import ManifestCache


class Rows:
    """A manifest's file, and how often its rows were read for images."""

    def __init__(self, path: Path, patch: pytest.MonkeyPatch) -> None:
        self.path, self.read, read = path, 0, Manifest._images

        def counted(manifest: Manifest) -> pd.DataFrame:
            self.read += 1
            return read(manifest)

        patch.setattr(Manifest, "_images", counted)

    @property
    def list(self) -> Path:
        return self.path.with_name(f".{self.path.stem}") / "images.parquet"

    def write(self, **changed: object) -> Manifest:
        rows = {
            "image_id": [7, 7, 3],
            "file": ["größe.mp4", "größe.mp4", "b.mp4"],
            "bytes": 9,
            "split": "test",
            "caption_id": [0, 1, 2],
            "caption": "a",
            "photograph": "0f",
            "kind": "video",
            "start": [np.nan, np.nan, 1.5],
            "end": 2.0,
        }
        return Manifest(pd.DataFrame(rows | changed), "mine", Path("clips")).save(self.path)

    def images(self) -> pd.DataFrame:
        return Manifest.load(self.path).images


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rows:
    monkeypatch.setattr(remembered, "SETTLED", -(10**12))  # as if files were old
    return Rows(tmp_path / "mine.parquet", monkeypatch)


def test_images_are_listed_once(rows: Rows) -> None:
    made = rows.write().images
    assert rows.images().equals(made)
    assert rows.images().dtypes.equals(Manifest.load(rows.path, computed=True).images.dtypes)
    assert rows.images()["image_id"].tolist() == [7, 3]
    assert rows.read == 2, "when it was made, and where all is to be computed"


def test_another_manifest_has_other_images(rows: Rows) -> None:
    opened = rows.write()
    rows.images()
    rows.write(image_id=[7, 7, 4])
    assert rows.images()["image_id"].tolist() == [7, 4]
    assert opened.images["image_id"].tolist() == [7, 3], "of the file that was opened"
    assert rows.images()["image_id"].tolist() == [7, 4], (
        "which is not kept as the list of its successor"
    )


def test_a_list_that_was_copied_with_its_manifest_is_made_again(rows: Rows, tmp_path: Path) -> None:
    rows.write()
    rows.images()
    shutil.copytree(tmp_path, tmp_path / "copy", copy_function=shutil.copy2)
    rows.path = tmp_path / "copy" / "mine.parquet"
    before = rows.read
    assert rows.images()["image_id"].tolist() == [7, 3]
    assert rows.read == before + 1


def test_a_manifest_that_is_replaced_before_it_is_opened_has_not_its_predecessors_list(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rows.write().images["image_id"].tolist() == [7, 3]
    listed = rows.list.read_bytes()

    class Replaced(ManifestCache):
        def __init__(self, manifest: Path | None = None) -> None:
            super().__init__(manifest)
            monkeypatch.setattr(table, "ManifestCache", ManifestCache)
            rows.write(image_id=[7, 7, 4])
            rows.list.write_bytes(listed)

    monkeypatch.setattr(table, "ManifestCache", Replaced)
    opened = Manifest.load(rows.path)
    assert opened.table["image_id"].tolist() == [7, 7, 4]
    assert opened.images["image_id"].tolist() == [7, 4]


@pytest.mark.parametrize(
    "damage", [lambda content: b"", lambda content: content[:-9], lambda content: b"{}"]
)
def test_a_damaged_list_is_made_again(rows: Rows, damage: Callable[[bytes], bytes]) -> None:
    rows.write()
    rows.images()
    rows.list.write_bytes(damage(rows.list.read_bytes()))
    assert rows.images()["image_id"].tolist() == rows.images()["image_id"].tolist() == [7, 3]
    assert rows.read == 2


@pytest.mark.slow
def test_no_damaged_value_is_taken(rows: Rows) -> None:
    made = rows.write().images
    content = rows.list.read_bytes()
    for at in range(0, parquet.read_metadata(rows.list).row_group(0).total_byte_size, 3):
        rows.list.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        assert rows.images().equals(made), at


def test_a_changed_copy_of_a_manifest_has_its_own_images_and_digests(rows: Rows) -> None:
    rows.write()
    known = Manifest.load(rows.path)
    copy = replace(known, source=known.table.assign(image_id=[1, 2, 3]))
    assert copy.images["image_id"].tolist() == [1, 2, 3]
    assert copy.images_digest != known.images_digest
    again = Manifest.load(rows.path)
    assert (again.images["image_id"].tolist(), again.images_digest) == ([7, 3], known.images_digest)


def test_nothing_is_kept_of_a_file_that_may_still_change(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "SETTLED", 10**12)
    rows.write()
    rows.images()
    assert not rows.list.exists()


def test_where_nothing_can_be_kept_images_are_read(rows: Rows) -> None:
    rows.list.parent.write_text("no folder")
    rows.write()
    assert rows.images()["image_id"].tolist() == rows.images()["image_id"].tolist() == [7, 3]
    assert rows.read == 2


def test_a_listed_image_has_the_files_times(rows: Rows) -> None:
    rows.write()
    os.utime(rows.path)
    for _ in range(2):
        [first, second] = Manifest.load(rows.path).gallery()
        assert (first.path.name, first.start, first.end, second.start) == (
            "größe.mp4",
            None,
            2.0,
            1.5,
        )

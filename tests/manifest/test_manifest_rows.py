"""A manifest's file is read by the columns that are asked for, and its digests are those of all rows as JSON."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from pipeline.manifest import Manifest, table
from pipeline.parts.errors import InputError

AWKWARD = ['a "quoted" word', "a\\b", "two\nlines", "Größe", "\x7f\u2028", "], [", "plain"]


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Manifest:
    """Ten images with seven captions each, in a file, of which few rows are read at once."""
    monkeypatch.setattr(table, "AT_ONCE", 8)
    ids = np.repeat(np.arange(10) * 3, 7)
    rows = pd.DataFrame({"image_id": ids, "file": [f"{each}.jpg" for each in ids], "bytes": 9, "split": np.where(
        ids < 9, "val", "train"), "caption_id": np.arange(70), "caption": AWKWARD * 10, "kind": "video",
        "start": np.where(ids < 6, np.nan, 1.5), "end": 2.0})
    Manifest(rows, "mine", Path("photographs")).save(tmp_path / "m.parquet")
    return Manifest.load(tmp_path / "m.parquet")


def _spoil(path: Path, column: str) -> None:
    """Overwrite all values of a column."""
    content, told = bytearray(path.read_bytes()), parquet.read_metadata(path)
    for group in range(told.num_row_groups):
        chunk = told.row_group(group).column(told.schema.names.index(column))
        first = chunk.dictionary_page_offset or chunk.data_page_offset
        content[first:first + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)


def test_images_are_read_without_captions(known: Manifest, tmp_path: Path) -> None:
    whole, digest = known.images, known.images_digest
    _spoil(tmp_path / "m.parquet", "caption")
    again = Manifest.load(tmp_path / "m.parquet")
    assert again.images.equals(whole)
    assert again.images["image_id"].tolist() == list(range(0, 30, 3))
    assert again.images_digest == digest
    assert again.rows(["caption_id"], lambda rows: rows[rows["caption_id"] > 60])["caption_id"].tolist() \
        == list(range(61, 70))
    for ask in (lambda: again.table, lambda: again.digest, lambda: again.split("val")):
        with pytest.raises(InputError, match="not a manifest"):
            ask()


def test_the_digest_is_that_of_a_json_list_a_row(known: Manifest) -> None:
    rows = known.table.itertuples(index=False, name=None)
    assert known.digest == hashlib.sha256("".join(
        json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()).hexdigest()


def test_a_split_is_its_rows(known: Manifest) -> None:
    for name, parts in (("val", ["val"]), ("train+val", ["train", "val"])):
        found, rows = known.split(name), pd.concat([known.table[known.table["split"] == part] for part in parts])
        assert found.captions == rows["caption"].tolist()
        assert found.image_ids[found.caption_image].tolist() == rows["image_id"].tolist()
        assert np.array_equal(known.images["image_id"].to_numpy()[found.store_rows], found.image_ids)


def test_an_open_manifest_is_the_file_that_was_opened(known: Manifest, tmp_path: Path) -> None:
    captions = known.table["caption"].tolist()
    other = Manifest.load(tmp_path / "m.parquet")
    Manifest(known.table.assign(caption="other"), "mine", Path("photographs")).save(tmp_path / "m.parquet")
    assert other.rows(["caption"])["caption"].tolist() == captions

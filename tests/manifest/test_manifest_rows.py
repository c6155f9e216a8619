"""A manifest's file is read by the columns that are asked for, and its digests are those of all
rows as JSON.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from pipeline.foundation.files import remembered
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import Manifest, table
from pipeline.foundation.manifest.rows import columns, separated
from pipeline.foundation.manifest.rows.separated import SeparatedFile
from pipeline.foundation.parts.errors import InputError

AWKWARD = ['a "quoted" word', "a\\b", "two\nlines", "Größe", "\x7f\u2028", "], [", "plain"]


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Manifest:
    """Ten images with seven captions each, in a file, of which few rows are read at once."""
    monkeypatch.setattr(table, "AT_ONCE", 8)
    ids = np.repeat(np.arange(10) * 3, 7)
    rows = pd.DataFrame(
        {
            "image_id": ids,
            "file": [f"{each}.jpg" for each in ids],
            "bytes": 9,
            "split": np.where(ids < 9, "val", "train"),
            "caption_id": np.arange(70),
            "caption": AWKWARD * 10,
            "kind": "video",
            "start": np.where(ids < 6, np.nan, 1.5),
            "end": 2.0,
        }
    )
    Manifest(rows, "mine", Path("photographs")).save(tmp_path / "m.parquet")
    return Manifest.load(tmp_path / "m.parquet")


def _spoil(path: Path, column: str) -> None:
    """Overwrite all values of a column."""
    content, reported = bytearray(path.read_bytes()), parquet.read_metadata(path)
    for group in range(reported.num_row_groups):
        chunk = reported.row_group(group).column(reported.schema.names.index(column))
        first = chunk.dictionary_page_offset or chunk.data_page_offset
        content[first : first + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)


def test_images_are_read_without_captions(known: Manifest, tmp_path: Path) -> None:
    whole, digest = known.images, known.images_digest
    _spoil(tmp_path / "m.parquet", "caption")
    again = Manifest.load(tmp_path / "m.parquet")
    assert again.images.equals(whole)
    assert again.images["image_id"].tolist() == list(range(0, 30, 3))
    assert again.images_digest == digest
    assert again.rows(["caption_id"], lambda rows: rows[rows["caption_id"] > 60])[
        "caption_id"
    ].tolist() == list(range(61, 70))
    for ask in (lambda: again.table, lambda: again.digest, lambda: again.split("val")):
        with pytest.raises(InputError, match="not a manifest"):
            ask()


def test_the_digest_is_that_of_a_json_list_a_row(known: Manifest) -> None:
    rows = known.table.itertuples(index=False, name=None)
    listed = hashlib.sha256(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    ).hexdigest()
    assert known.digest == digest([listed, {}])


@pytest.mark.slow
def test_the_captions_of_a_split_are_not_held_as_python_objects(tmp_path: Path) -> None:
    ids = np.repeat(np.arange(4000), 5)
    rows = pd.DataFrame(
        {
            "image_id": ids,
            "file": [f"{each}.jpg" for each in ids],
            "bytes": 9,
            "split": "train",
            "caption_id": np.arange(len(ids)),
            "caption": [f"photograph {each:05d}, new" for each in ids],
        }
    )
    Manifest(rows, "mine", Path("photographs")).save(tmp_path / "m.parquet")
    known = Manifest.load(tmp_path / "m.parquet")
    assert len(known.images) == 4000
    tracemalloc.start()
    try:
        found = known.split("train")
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert found.captions.tolist() == rows["caption"].tolist()
    assert held < 75 * len(
        ids
    )  # 21 bytes of text; a Python string has 49 more, and its place in a list


def test_a_split_is_its_rows(known: Manifest) -> None:
    for name, parts in (("val", ["val"]), ("train+val", ["train", "val"])):
        found, rows = (
            known.split(name),
            pd.concat([known.table[known.table["split"] == part] for part in parts]),
        )
        assert found.captions.tolist() == rows["caption"].tolist()
        assert found.image_ids[found.caption_image].tolist() == rows["image_id"].tolist()
        assert np.array_equal(
            known.images["image_id"].to_numpy()[found.store_rows], found.image_ids
        )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"caption": 1.5}, "its column caption is of type double"),
        ({"image_id": "0"}, "its column image_id is of type"),
        ({"image_id": np.uint64(2**63)}, "its column image_id is of type uint64"),
        ({"bytes": True}, "its column bytes is"),
        ({"file": [None] + ["0.jpg"] * 69}, "a row has no file"),
        ({"split": pd.Timestamp(0)}, "its column split is of"),
    ],
)
def test_columns_of_other_types_are_refused(
    known: Manifest, changed: dict[str, object], said: str, tmp_path: Path
) -> None:
    known.table.assign(**changed).to_parquet(tmp_path / "other.parquet", index=False)
    with pytest.raises(InputError, match=f"other.parquet: not a manifest, {said}"):
        Manifest.load(described(tmp_path / "other.parquet")).images  # noqa: B018


SAID = '{"dataset": "mine", "images": "photographs", "left_out": {}}'


def described(file: Path, said: str = SAID, **more: str) -> Path:
    """Write what pandas and the manifest say of a table anew."""
    table = parquet.read_table(file)
    parquet.write_table(table.replace_schema_metadata({"PANDAS_ATTRS": said, **more}), file)
    return file


def test_the_same_values_in_another_form_are_the_same_manifest(
    known: Manifest, tmp_path: Path
) -> None:
    """Categories, smaller numbers, other row groups, and what pandas says of a table, which may be
    wrong.
    """
    file = tmp_path / "other.parquet"
    rows = known.table.astype(
        {"caption": "category", "image_id": "int32", "split": "category", "bytes": "category"}
    )
    rows.to_parquet(file, index=False, row_group_size=3)
    described(file, pandas='{"index_columns": ["image_id"], "columns": [], "column_indexes": []}')
    for each in (Manifest.load(file), pickle.loads(pickle.dumps(Manifest.load(file)))):
        assert (each.digest, each.images_digest) == (known.digest, known.images_digest)
        assert each.images.equals(known.images)
        assert each.split("val").captions.tolist() == known.split("val").captions.tolist()


@pytest.mark.parametrize(
    "said",
    [
        "[1]",
        '{"dataset": 1, "images": "x"}',
        '{"dataset": "../../x", "images": "x"}',
        '{"dataset": "..", "images": "x"}',
        '{"dataset": "", "images": "x"}',
        '{"dataset": "mine", "images": ["x"], "left_out": {}}',
        "{",
        '{"dataset": "mine", "images": "x", "left_out": {"no caption": "many"}}',
        '{"dataset": "mine", "images": "x", "left_out": [1]}',
    ],
)
def test_what_a_file_says_of_itself_is_not_trusted(
    known: Manifest, said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"m\.parquet: not a manifest"):
        Manifest.load(described(tmp_path / "m.parquet", said))


def test_text_that_is_not_utf_8_is_one_line(known: Manifest, tmp_path: Path) -> None:
    file = described(tmp_path / "m.parquet")
    content = file.read_bytes()
    assert "Größe".encode() in content
    file.write_bytes(content.replace("Größe".encode(), b"Gr\xff\xff\xff\xffe"))
    with pytest.raises(InputError, match="not a manifest"):
        Manifest.load(file).digest  # noqa: B018


def test_no_rows_and_images_of_two_splits_are_one_line(known: Manifest, tmp_path: Path) -> None:
    table = known.table
    Manifest(table.iloc[:0], "mine", Path("photographs")).save(tmp_path / "none.parquet")
    with pytest.raises(InputError, match="not a manifest, it has no rows"):
        Manifest.load(tmp_path / "none.parquet")
    table.loc[3, "split"] = "train"
    with pytest.raises(InputError, match="image 0 is in the split train and in another one"):
        Manifest(table, "mine", Path("photographs")).split("train")


def test_the_digest_of_a_new_manifest_is_computed_once(
    known: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "SETTLED", 0)
    saved = Manifest(known.table, "mine", Path("photographs")).save(tmp_path / "m.parquet")
    computed = saved.digest
    monkeypatch.delattr(table, "_digest")
    assert Manifest.load(tmp_path / "m.parquet").digest == computed


def test_an_open_manifest_is_the_file_that_was_opened(known: Manifest, tmp_path: Path) -> None:
    captions = known.table["caption"].tolist()
    other = Manifest.load(tmp_path / "m.parquet")
    Manifest(known.table.assign(caption="other"), "mine", Path("photographs")).save(
        tmp_path / "m.parquet"
    )
    assert other.rows(["caption"])["caption"].tolist() == captions


@pytest.mark.slow
def test_columns_of_hostile_names_are_found_in_time_that_grows_with_them() -> None:
    digits, began = "9" * 50_000 + "x", time.process_time()
    many = [f"column {number}" for number in range(200_000)]
    found = columns.find([digits, "image", "caption 2", "caption", *many, "text", "caption1"])
    assert time.process_time() - began < 2.5
    assert found.roles == {"image": (1,), "caption": (3, 2, 200_005)}
    assert found.unused == [*many, "text"]


def test_a_quotation_that_is_never_closed_is_refused_and_damage_among_rows_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "AT_ONCE", 8)
    monkeypatch.setattr(separated, "MOST_DAMAGED", 500)
    begin, words = 'image,caption\na.jpg,"', "a dog and a cat\n" * 510
    (tmp_path / "a.csv").write_text(begin + words)
    with pytest.raises(InputError, match="is a quotation never closed"):
        [*SeparatedFile(tmp_path / "a.csv").batches([0, 1], LeftOut("row"))]
    (tmp_path / "b.csv").write_text("image,caption\na.jpg,A dog.\n" + words)
    batches = [*SeparatedFile(tmp_path / "b.csv").batches([0, 1], LeftOut("row"))]
    assert [batch.columns[1] for batch in batches if batch.columns[1]] == [["A dog."]]

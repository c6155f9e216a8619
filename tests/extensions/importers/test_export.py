"""Exports to SCAN's layout: older code reads what the store and the manifest hold, and nothing is
half there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import foreign
import numpy as np
import pytest
from folders import tree

from pipeline.extensions.importers import butd_tsv, import_features
from pipeline.extensions.importers.base import SourceItems
from pipeline.extensions.importers.export import _line, scan_name
from pipeline.foundation.manifest import Manifest, dataset as card_of
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.store import FeatureStore, StoreError, export as exporting

pytestmark = pytest.mark.slow

TABLE = foreign.manifest(14, captions=6, dataset="mine")
VARY = [1 + place % 3 for place in range(14)]


export = partial(exporting.export, "scan", root=Path())


def holds(folder: Path, name: str) -> dict[str, Any]:
    """What an export says that it holds."""
    found: dict[str, Any] = json.loads((folder / f"{name}_made_from.json").read_text())
    return found


def made(
    folder: Path,
    table: Manifest,
    items: list[int],
    lacking: tuple[int, ...] = (),
    dtype: str = "float32",
) -> tuple[FeatureStore, list[foreign.Picture]]:
    """A store of a manifest's images, without those `lacking`."""
    (folder / "source").mkdir()
    there = foreign.pictures(table, items, 5)
    paths = foreign.npy(
        folder / "source", [image for row, image in enumerate(there) if row not in lacking]
    )
    import_features(
        foreign.job(table, "folder", paths, folder / "s.zarr", on_error="skip", dtype=dtype)
    )
    return FeatureStore(folder / "s.zarr"), there


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("split", "name"), [("train", "train"), ("val", "dev"), ("test", "test")])
def test_older_code_reads_what_was_stored(
    split: str, name: str, dtype: str, tmp_path: Path
) -> None:
    store, there = made(tmp_path, TABLE, [3] * 14, dtype=dtype)
    reported: list[int] = []
    done = export(store, TABLE, split, tmp_path / "out", reported.append, reported.append)
    expected = [image for image in there if image.split == split]
    assert (done.images, done.left_out, done.written) == (len(expected), [], True)
    assert (
        holds(tmp_path / "out", name).items()
        >= {
            "split": split,
            "images": len(expected),
            "items": 3,
            "dimension": 5,
            "captions_left_out": len(expected),
        }.items()
    )
    assert reported == [len(expected), len(expected)]
    array = np.load(tmp_path / "out" / f"{name}_ims.npy")
    assert array.dtype == np.float32
    assert np.array_equal(array, np.stack([image.features for image in expected]).astype(dtype))
    text = {
        what: (tmp_path / "out" / f"{name}_{what}.txt").read_text().splitlines()
        for what in ("ids", "caps")
    }
    assert text["ids"] == [str(image.number) for image in expected]
    assert text["caps"] == [caption for image in expected for caption in image.captions[:5]]
    assert not (tmp_path / "out" / f"{name}_counts.npy").exists()
    assert not list((tmp_path / "out").glob("*.partial"))


@pytest.mark.specification
def test_exported_and_imported_again(tmp_path: Path) -> None:
    store, there = made(tmp_path, TABLE, VARY)
    for split, name in (("train", "train"), ("val", "dev"), ("test", "test")):
        export(store, TABLE, split, tmp_path / "out")
        assert np.load(tmp_path / "out" / f"{name}_counts.npy").min() == 1
    import_features(foreign.job(TABLE, "scan", [tmp_path / "out"], tmp_path / "back.zarr"))
    back = FeatureStore(tmp_path / "back.zarr").require(TABLE)
    features, counts = back.read(np.arange(14))
    assert counts.tolist() == VARY
    for row, image in enumerate(there):
        assert features[row, : VARY[row]].tobytes() == image.features.tobytes()
        assert not features[row, VARY[row] :].any()


def test_images_with_fewer_items_are_padded_and_counted(tmp_path: Path) -> None:
    store, there = made(tmp_path, TABLE, VARY)
    export(store, TABLE, "val", tmp_path / "out")
    expected = [len(image.features) for image in there if image.split == "val"]
    assert np.load(tmp_path / "out" / "dev_counts.npy").tolist() == expected
    array = np.load(tmp_path / "out" / "dev_ims.npy")
    assert [int(image.any(axis=1).sum()) for image in array] == expected


def test_failed_images_are_left_out_with_their_captions_and_named(tmp_path: Path) -> None:
    rows = np.flatnonzero(TABLE.images["split"] == "train").tolist()
    store, there = made(tmp_path, TABLE, [2] * 14, lacking=(rows[0], rows[3]))
    done = export(store, TABLE, "train", tmp_path / "out")
    assert done.left_out == [there[rows[0]].file, there[rows[3]].file]
    assert holds(tmp_path / "out", "train")["left_out"] == done.left_out
    assert np.load(tmp_path / "out" / "train_ims.npy").shape == (len(rows) - 2, 2, 5)
    captions = (tmp_path / "out" / "train_caps.txt").read_text().splitlines()
    assert captions[:5] == there[rows[1]].captions[:5]
    assert len(captions) == 5 * (len(rows) - 2)


def test_a_split_without_any_image_left(tmp_path: Path) -> None:
    rows = np.flatnonzero(TABLE.images["split"] == "val").tolist()
    store, _ = made(tmp_path, TABLE, [2] * 14, lacking=tuple(rows))
    with pytest.raises(InputError, match="every image of the split val failed"):
        export(store, TABLE, "val", tmp_path / "out")


def test_fewer_than_five_captions(tmp_path: Path) -> None:
    number = TABLE.images["image_id"][2]
    own = TABLE.table[
        (TABLE.table["image_id"] != number) | (TABLE.table["caption_id"] % 10 < 4)
    ].reset_index(drop=True)
    table = replace(TABLE, source=own)
    store, there = made(tmp_path, table, [2] * 14)
    assert there[2].split == "val"
    with pytest.raises(InputError, match=f"{there[2].file}: has 4 captions"):
        export(store, table, "val", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert export(store, table, "test", tmp_path / "out").images == 3


def test_a_caption_is_one_line(tmp_path: Path) -> None:
    broken = TABLE.table.assign(
        caption=[f" Two\nlines\u2028and {row}\t. " for row in range(len(TABLE.table))]
    )
    table = replace(TABLE, source=broken)
    store, _ = made(tmp_path, table, [2] * 14)
    export(store, table, "val", tmp_path / "out")
    lines = (tmp_path / "out" / "dev_caps.txt").read_bytes().decode().split("\n")
    assert len(lines) == 5 * 3 + 1
    assert lines[0] == "Two lines and 12 ."
    import_features(
        foreign.job(table, "scan", [tmp_path / "out"], tmp_path / "back.zarr", on_error="skip")
    )


def test_again_does_nothing_and_nothing_else_is_replaced(tmp_path: Path) -> None:
    store, _ = made(tmp_path, TABLE, VARY)
    first = export(store, TABLE, "val", tmp_path / "out")
    before = tree(tmp_path / "out")
    again = export(store, TABLE, "val", tmp_path / "out")
    assert again == replace(first, written=False, content=f"{first.content}, up to date")
    assert tree(tmp_path / "out") == before
    (tmp_path / "other").mkdir()
    other, _ = made(tmp_path / "other", TABLE, [2] * 14)
    with pytest.raises(
        InputError, match=r"dev_made_from\.json: exists and is not an export of this store"
    ):
        export(other, TABLE, "val", tmp_path / "out")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "dev_ims.npy").write_bytes(b"33 GB")
    with pytest.raises(InputError, match=r"dev_ims\.npy: exists and is not an export"):
        export(store, TABLE, "val", tmp_path / "theirs")
    assert tree(tmp_path / "theirs") == {"dev_ims.npy": b"33 GB"}


def test_what_was_cut_off_is_done_again(tmp_path: Path) -> None:
    store, _ = made(tmp_path, TABLE, VARY)
    export(store, TABLE, "train", tmp_path / "whole")

    def cut(count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(store, TABLE, "train", tmp_path / "out", on_images=cut)
    assert tree(tmp_path / "out") == {}
    (tmp_path / "out" / "train_ims.npy.partial").write_bytes(b"killed")
    export(store, TABLE, "train", tmp_path / "out")
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")
    for name in ("train_ims.npy", "train_caps.txt"):
        (tmp_path / "out" / name).unlink()
        assert export(store, TABLE, "train", tmp_path / "out").written
        assert tree(tmp_path / "out") == tree(tmp_path / "whole")


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = made(tmp_path, TABLE, VARY)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        export(store, TABLE, "val", tmp_path / "out")
    assert tree(tmp_path / "out") == {}


def test_another_manifests_store_is_refused(tmp_path: Path) -> None:
    store, _ = made(tmp_path, TABLE, [2] * 14)
    with pytest.raises(StoreError, match="another manifest's images"):
        export(store, foreign.manifest(13), "val", tmp_path / "out")


def test_the_export_says_what_made_it(tmp_path: Path) -> None:
    store, _ = made(tmp_path, TABLE, [2] * 14)
    export(store, TABLE, "val", tmp_path / "out")
    said = json.loads((tmp_path / "out" / "dev_made_from.json").read_text())
    assert (said["store"], said["manifest"], said["split"]) == (store.identity, TABLE.digest, "val")
    assert (said["recipe"], said["format"]) == ("folder-2x5", "folder")


@pytest.mark.parametrize(
    ("dataset", "names"),
    [
        ("coco", ["train", "dev", "testall"]),
        ("flickr30k", ["train", "dev", "test"]),
        ("mine", ["train", "dev", "test"]),
    ],
)
def test_names(dataset: str, names: list[str]) -> None:
    card = card_of(dataset, Path())
    assert [scan_name(split, card) for split in ("train", "val", "test")] == names


def test_memory_is_a_batchs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are written as they are read: no array is larger than one."""
    store, _ = made(tmp_path, TABLE, [2] * 14)
    monkeypatch.setattr("pipeline.extensions.importers.export.BATCH", 2)
    read: Callable[..., tuple[np.ndarray, np.ndarray]] = store.read
    sizes: list[int] = []

    def counted(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sizes.append(len(rows))
        return read(rows)

    monkeypatch.setattr(store, "read", counted)
    export(store, TABLE, "train", tmp_path / "out")
    assert sizes == [2, 2, 2, 2]


def test_a_row_names_its_image_as_the_readers_of_its_columns_do() -> None:
    """LXMERT's by the file without folder and suffix, bottom-up-attention's by number."""
    extras = {
        "boxes": np.zeros((1, 4), np.float32),
        "object": np.zeros(1, np.int64),
        "object_score": np.zeros(1, np.float32),
        "attribute": np.zeros(1, np.int64),
        "attribute_score": np.zeros(1, np.float32),
    }
    image = SourceItems(np.zeros((1, 2), np.float32), extras, (640, 480))
    file = "val2014/COCO_val2014_000000000042.jpg"
    for columns, begin in (
        (butd_tsv.LXMERT, [b"COCO_val2014_000000000042", b"480", b"640"]),
        (butd_tsv.ANDERSON, [b"7", b"640", b"480", b"1"]),
    ):
        assert _line(7, file, image, columns).split(b"\t")[: len(begin)] == begin

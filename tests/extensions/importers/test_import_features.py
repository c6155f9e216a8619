"""Imports of every format: bit for bit what was written, resumable, exclusive, and clear about what
is missing.
"""

from __future__ import annotations

import os
import signal
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import foreign
import numpy as np
import pytest
from folders import tree

from pipeline.extensions.importers import import_features
from pipeline.foundation.artefacts import code
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.store import FeatureStore, StoreError, exclusive, ledger, verify

pytestmark = pytest.mark.slow

DIMENSION = 7


def counts(images: int, vary: bool, seed: int) -> list[int]:
    """Even numbers of items, so that they make maps of two rows."""
    return (
        (2 * np.random.default_rng(seed).integers(1, 8, images)).tolist() if vary else [6] * images
    )


@pytest.mark.parametrize("source", foreign.SOURCES)
def test_a_store_holds_what_the_source_holds(source: str, tmp_path: Path) -> None:
    form, write, vary, extras = foreign.SOURCES[source]
    table = foreign.manifest(7)  # the third shard has one image
    there = foreign.pictures(table, counts(7, vary, 1), DIMENSION, 1)
    (tmp_path / "source").mkdir()
    job = foreign.job(table, form, write(tmp_path / "source", there), tmp_path / "s.zarr")
    assert import_features(job).images == len(there)
    store = FeatureStore(tmp_path / "s.zarr").require(table)
    assert store.layout.items == max(len(image.features) for image in there)
    assert (store.fingerprint["format"], tuple(store.layout.extras)) == (form, extras)
    for row, image in enumerate(there):
        n = len(image.features)
        features, valid = store.read(np.array([row]))
        assert valid.tolist() == [n]
        assert features[0, :n].tobytes() == image.features.tobytes()
        assert not features[0, n:].any()
        expected = {
            "boxes": image.boxes,
            "object": image.objects,
            "object_score": image.scores,
            "attribute": image.objects[::-1],
            "attribute_score": image.scores[::-1],
        }
        for name in extras:
            assert np.array_equal(store.extra(name, np.array([row]))[0, :n], expected[name])
    assert not [fault for _, found in verify.verify(tmp_path / "s.zarr") for fault in found]


@pytest.mark.parametrize("source", ["lxmert", "npz"])
def test_sizes_are_the_sources(source: str, tmp_path: Path) -> None:
    import zarr

    table = foreign.manifest(5)
    there = foreign.pictures(table, [2] * 5, DIMENSION)
    form, write, _, _ = foreign.SOURCES[source]
    import_features(foreign.job(table, form, write(tmp_path, there), tmp_path / "s.zarr"))
    sizes = zarr.open_group(tmp_path / "s.zarr", mode="r")["sizes"]
    assert sizes[:].tolist() == [list(image.size) for image in there]  # type: ignore[index, union-attr]


@pytest.mark.parametrize("source", ["anderson", "lxmert", "npz", "npz-lying"])
def test_boxes_that_are_no_pixels_of_the_image_are_refused(source: str, tmp_path: Path) -> None:
    form, write, _, _ = foreign.SOURCES[source]
    table = foreign.manifest(4)

    def imported(
        change: Callable[[foreign.Picture], foreign.Picture], name: str, on_error: str
    ) -> list[str]:
        """The reasons why images were left out."""
        (tmp_path / name).mkdir()
        there = [change(image) for image in foreign.pictures(table, [3] * 4, DIMENSION)]
        paths = write(tmp_path / name, there)
        job = foreign.job(table, form, paths, tmp_path / f"{name}.zarr", on_error=on_error)
        return [*import_features(job).failed.values()]

    def shares(image: foreign.Picture) -> foreign.Picture:
        of_size = np.array([*image.size, *image.size])
        return replace(image, boxes=(image.boxes / of_size).astype(np.float32))

    def too_small(image: foreign.Picture) -> foreign.Picture:
        width, height = image.size
        boxes = np.tile(np.float32([0, 0, width, height]), (3, 1))
        return replace(image, boxes=boxes, size=(width, height // 2))

    for on_error in ("fail", "skip"):  # of no image it would be right
        with pytest.raises(InputError, match="boxes from 0 to 1: multiply by the size"):
            imported(shares, f"shares-{on_error}", on_error)
    if source == "npz-lying":  # says no sizes
        return
    first = foreign.pictures(table, [3] * 4, DIMENSION)[0]
    width, height = first.size
    named = f"the box 0 0 {width} {height} is outside the image, which has {width} x {height // 2}"
    with pytest.raises(InputError, match=f"{named} pixels by its width and height"):
        imported(too_small, "small-fail", "fail")
    assert len(imported(too_small, "small-skip", "skip")) == 4


@pytest.fixture
def tsv(tmp_path: Path) -> Any:
    """An import of eleven images, of 2 to 12 items, from a TSV."""
    table = foreign.manifest(11)
    there = foreign.pictures(table, counts(11, True, 0), DIMENSION)
    return foreign.job(table, "butd-tsv", foreign.lxmert_tsv(tmp_path, there), tmp_path / "s.zarr")


def test_a_store_of_another_version_of_its_reader_is_another(
    tsv: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tsv.index(lambda count: None)
    before = tsv.wanted(source).fingerprint
    monkeypatch.setitem(code.RAISED, "importers/butd-tsv", before["version"] + 1)
    assert tsv.wanted(source).fingerprint == before | {"version": before["version"] + 1}


@pytest.mark.specification
def test_float16_is_the_nearest_value(tsv: Any, tmp_path: Path) -> None:
    import_features(tsv)
    import_features(replace(tsv, store=tmp_path / "half.zarr", dtype="float16"))
    rows = np.arange(11)
    exact, half = (FeatureStore(tmp_path / name).read(rows)[0] for name in ("s.zarr", "half.zarr"))
    assert half.dtype == np.float16
    assert np.array_equal(half, exact.astype(np.float16))


def test_again_does_nothing(tsv: Any) -> None:
    assert import_features(tsv).images == 11
    before = tree(tsv.store)
    assert import_features(tsv).images == 0
    assert tree(tsv.store) == before


def test_killed_between_data_and_ledger_and_resumed_it_is_bit_identical(
    tsv: Any, tmp_path: Path
) -> None:
    whole = replace(tsv, store=tmp_path / "whole.zarr")
    import_features(whole)
    write = ledger.write
    for shard in (0, 3):
        killed = replace(tsv, store=tmp_path / f"killed-{shard}.zarr")
        child = os.fork()
        if child == 0:

            def die(store: Path, entry: ledger.LedgerEntry, shard: int = shard) -> None:
                if entry.shard == shard:
                    os.kill(os.getpid(), signal.SIGKILL)
                write(store, entry)

            ledger.write = die
            import_features(killed)
            os._exit(0)
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
        with pytest.raises(StoreError, match=f"{4 - shard} of 4 shards"):
            FeatureStore(killed.store)
        assert import_features(killed).images == 11 - 3 * shard
        assert tree(killed.store) == tree(whole.store)


def test_a_second_import_into_one_store_is_refused(tsv: Any) -> None:
    with exclusive(tsv.store), pytest.raises(InputError, match="another process is writing"):
        import_features(tsv)


def test_made_otherwise_is_refused_or_replaced(tsv: Any, tmp_path: Path) -> None:
    import_features(tsv)
    with pytest.raises(InputError, match="recipe was butd-tsv-2-12x7, is other"):
        import_features(replace(tsv, reported_as="other"))
    with pytest.raises(InputError, match=r"row\.dtype was float32, is float16"):
        import_features(replace(tsv, dtype="float16"))
    path = tsv.paths[0]
    content = bytearray(path.read_bytes())
    content[-9] = ord("B") if content[-9] == ord("A") else ord("A")  # same name, same size
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"source\.sampled_sha256 was "):
        import_features(tsv)
    assert import_features(replace(tsv, if_changed="redo")).images == 11


def test_the_recipe_says_no_more_than_the_file_does(tsv: Any) -> None:
    assert import_features(tsv).reported_as == "butd-tsv-2-12x7"
    named = replace(tsv, reported_as="butd-2-12-proposals", if_changed="redo")
    assert import_features(named).reported_as == "butd-2-12-proposals"
    assert FeatureStore(tsv.store).fingerprint["recipe"] == "butd-2-12-proposals"
    for name in ("", " ", "two\nlines"):
        with pytest.raises(InputError, match="--network"):
            replace(tsv, reported_as=name)


def test_images_that_the_source_lacks(tsv: Any) -> None:
    path = tsv.paths[0]
    rows = path.read_text().splitlines()
    gone = rows[4].split("\t")[0]
    path.write_text("\n".join(rows[:4] + rows[5:]))
    with pytest.raises(
        InputError, match=rf"1 of 11 .* damaged, the first val2014/{gone}.jpg .*no features"
    ):
        import_features(tsv)
    assert not tsv.store.exists()
    done = import_features(replace(tsv, on_error="skip"))
    assert list(done.failed.values()) == ["the source has no features of it"]
    lines = (tsv.store / "failures.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines] == ["file", f"val2014/{gone}.jpg"]
    assert np.flatnonzero(~FeatureStore(tsv.store).done).tolist() == list(done.failed)
    with pytest.raises(InputError, match="1 of 11 images are missing or damaged"):
        import_features(tsv)


def test_images_of_no_manifest_are_told_and_left_out(tsv: Any, tmp_path: Path) -> None:
    half = tsv.manifest.table[tsv.manifest.table["split"] != "train"].reset_index(drop=True)
    done = import_features(replace(tsv, manifest=replace(tsv.manifest, source=half)))
    assert done.images == half["image_id"].nunique()
    assert done.notes[1:] == [f"{11 - done.images} of 11 rows are of no image of coco"]


def test_a_source_of_other_images_is_refused(tsv: Any) -> None:
    other = foreign.manifest(11)
    other.table["file"] = (
        other.table["file"].str.replace("COCO_val2014_", "x").str.replace(".jpg", "y.jpg")
    )
    other.table["image_id"] += 20_000
    with pytest.raises(
        InputError, match=r"none of its 11 ids is an image of coco .*'COCO_val2014_\d+'"
    ):
        import_features(replace(tsv, manifest=other))


@pytest.mark.parametrize("source", ["lxmert", "scan", "npy"])
def test_memory_is_a_shards_and_not_the_sources(source: str, tmp_path: Path) -> None:
    """tracemalloc counts numpy's arrays and Python's bytes, and no memory maps."""
    form, write, _, _ = foreign.SOURCES[source]
    table = foreign.manifest(60)
    (tmp_path / "source").mkdir()
    paths = write(tmp_path / "source", foreign.pictures(table, [8] * 60, 1024))
    size = 60 * 8 * 1024 * 4
    import_features(
        foreign.job(table, form, paths, tmp_path / "first.zarr")
    )  # imports what is imported when used
    tracemalloc.start()
    import_features(foreign.job(table, form, paths, tmp_path / "s.zarr"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size / 2


def test_of_images_whose_files_were_replaced_the_features_alone_are_imported_again(
    tsv: Any,
) -> None:
    import_features(tsv)
    before, table = FeatureStore(tsv.store).read(np.arange(11))[0], tsv.manifest.table.copy()
    table.loc[table["image_id"] == tsv.manifest.images["image_id"][4], "bytes"] += 1
    now = replace(tsv, manifest=replace(tsv.manifest, source=table))
    with pytest.raises(InputError, match="row 4 is of another file now"):
        import_features(now)
    assert import_features(replace(now, if_changed="redo")).images == 1
    store = FeatureStore(tsv.store).require(now.manifest)
    assert np.array_equal(store.read(np.arange(11))[0], before)
    assert not [fault for _, found in verify.verify(tsv.store) for fault in found]
    assert import_features(now).images == 0


def test_of_shards_that_wait_while_files_are_replaced_all_images_are_imported(tsv: Any) -> None:
    import_features(tsv)
    before, table = FeatureStore(tsv.store).read(np.arange(11))[0], tsv.manifest.table.copy()
    table.loc[table["image_id"] == tsv.manifest.images["image_id"][4], "bytes"] += 1
    ledger.erase(tsv.store, 2)
    now = replace(tsv, manifest=replace(tsv.manifest, source=table), if_changed="redo")
    assert import_features(now).images == 1 + 3
    assert np.array_equal(
        FeatureStore(tsv.store).require(now.manifest).read(np.arange(11))[0], before
    )

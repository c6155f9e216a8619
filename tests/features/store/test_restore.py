"""What describes a store comes back from its copy, its layout, the manifest and its files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import forged
import numpy as np
import pytest
from folders import tree

from pipeline.features import extraction
from pipeline.features.extractors import Runtime
from pipeline.features.store import (
    FeatureStore,
    StoreError,
    read_header,
    restore,
    shard_file,
    verify,
)
from pipeline.features.store.layout import DONE
from pipeline.features.store.rewrite import rewrite
from pipeline.files import atomic
from pipeline.files.compared import MATCHES
from pipeline.manifest import Manifest

ENGINE = extraction.EngineSpec(
    "grid",
    {"network": "test_efficientnet", "weights": "untrained", "image_size": 64, "grid": 2},
    Runtime(),
)


@pytest.fixture(scope="module")
def extracted(scenes: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("restore") / "grid.zarr"
    extraction.extract(extraction.ExtractionJob(scenes, scenes.images_folder, store, ENGINE, 4, 8))
    return store


@pytest.fixture
def store(extracted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(extracted, tmp_path / "grid.zarr"))


def restored(store: Path, manifest: Manifest) -> str:
    return "; ".join(restore.restore(store, lambda dataset: manifest))


def faults(store: Path) -> list[str]:
    return [fault for _, found in verify.verify(store, workers=3) for fault in found]


def edit(file: Path) -> None:
    file.write_text(file.read_text().replace("grid", "grit").replace('"/"', '"."'))


LOST: dict[str, Callable[[Path], object]] = {
    "zarr.json restored from header.json": lambda store: (store / "zarr.json").unlink(),
    "zarr.json restored": lambda store: edit(store / "zarr.json"),
    "features/zarr.json restored from the layout": lambda store: edit(
        store / "features" / "zarr.json"
    ),
    "status/zarr.json restored from the layout": lambda store: (
        store / "status" / "zarr.json"
    ).unlink(),
    "ids restored from the manifest": lambda store: shutil.rmtree(store / "ids" / "c"),
    "ids/zarr.json restored from the layout; ids restored": lambda store: shutil.rmtree(
        store / "ids"
    ),
    "shard 2: ledger entry made from its files": lambda store: (
        store / "ledger" / "000002.json"
    ).unlink(),
    "shard 1: ledger entry made": lambda store: (store / "ledger" / "000001.json").write_text("{"),
    "shard 0: ledger entry made": lambda store: shutil.rmtree(store / "ledger"),
}


@pytest.mark.parametrize("said", LOST)
def test_what_is_lost_comes_back_byte_for_byte(store: Path, scenes: Manifest, said: str) -> None:
    whole = tree(store)
    LOST[said](store)
    assert said in restored(store, scenes)
    assert tree(store) == whole
    assert restored(store, scenes) == ""
    assert faults(store) == []


def test_ids_of_a_store_that_has_grown_come_back_by_its_photographs(
    store: Path, scenes: Manifest
) -> None:
    ids = scenes.images["image_id"].to_numpy()
    less = replace(
        scenes, source=scenes.table[scenes.table["image_id"].isin(ids[5:])].reset_index(drop=True)
    )
    extraction.extract(
        extraction.ExtractionJob(
            less, less.images_folder, store.with_name("few.zarr"), ENGINE, 4, 8
        )
    )
    grown = extraction.ExtractionJob(
        scenes, scenes.images_folder, store.with_name("few.zarr"), ENGINE, 4, 8
    )
    assert extraction.extract(grown).extracted == 5
    whole = tree(grown.store)
    shutil.rmtree(grown.store / "ids" / "c")
    assert restored(grown.store, scenes) == "ids restored from the images"
    assert tree(grown.store) == whole


def test_a_shard_that_is_not_whole_gets_no_entry(store: Path, scenes: Manifest) -> None:
    (store / "ledger" / "000001.json").unlink()
    file = store / "features" / "c" / "1" / "0" / "0"
    file.write_bytes(file.read_bytes()[:-8])
    assert restored(store, scenes) == ""
    assert "not extracted yet" in faults(store)


def test_features_of_photographs_that_were_replaced_get_no_entry(
    store: Path, scenes: Manifest
) -> None:
    (store / "ledger" / "000001.json").unlink()
    replaced = scenes.table["image_id"] == scenes.images["image_id"][9]
    sizes = scenes.table["bytes"].where(~replaced, scenes.table["bytes"] + 1)
    assert restored(store, replace(scenes, source=scenes.table.assign(bytes=sizes))) == ""
    assert "not extracted yet" in faults(store)


@pytest.mark.parametrize(("replaced", "taken"), [(1, True), (12, True), (13, False)])
def test_ids_are_the_manifests_unless_most_photographs_are_other_ones(
    store: Path, scenes: Manifest, replaced: int, taken: bool
) -> None:
    """Of 24."""
    whole = tree(store)
    shutil.rmtree(store / "ids" / "c")
    some = scenes.table["image_id"].isin(scenes.images["image_id"][:replaced])
    sizes = scenes.table["bytes"].where(~some, scenes.table["bytes"] + 1)
    other = replace(scenes, source=scenes.table.assign(bytes=sizes))
    if taken:
        assert restored(store, other) == "ids restored from the manifest"
        assert tree(store) == whole
    else:
        with pytest.raises(StoreError, match="by their sizes in bytes, its images are not"):
            restored(store, other)


def test_ids_of_another_manifest_are_not_taken(store: Path, scenes: Manifest) -> None:
    shutil.rmtree(store / "ids" / "c")
    ids = scenes.images["image_id"].to_numpy()
    less = replace(
        scenes, source=scenes.table[scenes.table["image_id"].isin(ids[1:])].reset_index(drop=True)
    )
    with pytest.raises(StoreError, match="the manifest is another one"):
        restored(store, less)


def test_the_content_of_images_does_not_depend_on_how_they_are_kept(
    store: Path, scenes: Manifest
) -> None:
    some = np.array([3, 11, 20])
    before = FeatureStore(store).require(scenes).content(some)
    rewrite(store, scenes, compressor="zstd", shard_images=5)
    after = FeatureStore(store).require(scenes)
    assert after.content(some) == before
    assert list(verify.changed(store, some)) == []
    assert after.content(some[:2]) != before


def test_the_digest_of_an_image_is_of_its_valid_items_and_its_size() -> None:
    arrays = {
        "features": np.arange(24.0).reshape(2, 3, 4),
        "counts": np.array([2, 3]),
        "sizes": np.array([[5, 6]] * 2),
        "status": np.array([DONE, DONE]),
    }
    before = shard_file.values(range(7, 9), arrays)
    assert before.keys() == {7, 8}
    for name, change, differ in (
        ("features", (0, 1, 0), True),
        ("features", (0, 2, 0), False),
        ("sizes", (0, 1), True),
        ("counts", (0,), True),
    ):
        other = {key: values.copy() for key, values in arrays.items()}
        other[name][change] += 1
        after = shard_file.values(range(7, 9), other)
        assert (after[7] != before[7], after[8]) == (differ, before[8])


def test_digests_of_images_that_are_not_their_values_are_found(store: Path) -> None:
    file = store / "ledger" / "000001.json"
    forged.entry(
        file,
        lambda entry: entry["values"].update(
            {"9": entry["values"]["10"], "10": entry["values"]["9"]}
        ),
    )
    assert faults(store) == ["its rows' digests in the ledger are not those of its values"]
    ((changed, _, _),) = verify.changed(store, np.array([9]))
    assert changed == file


@pytest.mark.parametrize("lost", ["zarr.json", ""])
def test_the_description_of_another_store_forgets_no_features(
    store: Path, scenes: Manifest, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = extraction.EngineSpec(
        "grid",
        {"network": "test_efficientnet", "weights": "untrained", "image_size": 64, "grid": 1},
        Runtime(),
    )
    beside = store.with_name("other.zarr")
    extraction.extract(extraction.ExtractionJob(scenes, scenes.images_folder, beside, other, 4, 8))
    for name in ("header.json", "zarr.json"):
        shutil.copyfile(beside / "header.json", store / name)
    forged.recorded(store)
    if lost:
        (store / lost).unlink()
    before = tree(store)
    monkeypatch.setattr(
        atomic, "write_bytes", pytest.fail
    )  # not for a moment: the process may be killed then
    with pytest.raises(
        StoreError, match=r"describe features of shape .*put this store's own header\.json there"
    ):
        restored(store, scenes)
    assert tree(store) == before


@pytest.fixture(scope="module")
def alike(scenes: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another store of the same shapes: the same network on images of another size."""
    options = {**dict(ENGINE.options), "image_size": 96}
    store = tmp_path_factory.mktemp("alike") / "grid.zarr"
    engine = extraction.EngineSpec("grid", options, Runtime())
    extraction.extract(extraction.ExtractionJob(scenes, scenes.images_folder, store, engine, 4, 8))
    return store


def test_the_description_of_another_store_of_equal_shapes_is_replaced_by_the_stores_own(
    store: Path, alike: Path, scenes: Manifest
) -> None:
    whole = tree(store)
    shutil.copyfile(alike / "zarr.json", store / "zarr.json")
    with pytest.raises(StoreError, match=r"zarr\.json: changed after it was written"):
        faults(store)
    forged.recorded(store)
    with pytest.raises(StoreError, match=r"zarr\.json is of another store than"):
        faults(store)
    assert {file.parent.name for file, _, _ in verify.changed(store, np.array([9]))} == {"ledger"}
    assert restored(store, scenes) == "zarr.json restored from header.json"
    assert tree(store) == whole
    assert faults(store) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("zarr.json", "zarr.json restored from header.json"),
        ("header.json", "header.json restored from zarr.json"),
        ("failures.csv", "failures.csv made again from the ledger"),
    ],
)
def test_an_edit_of_a_file_that_describes_the_store_is_seen_and_repaired(
    store: Path, scenes: Manifest, name: str, said: str
) -> None:
    whole, (layout, _) = tree(store), read_header(store)
    (store / name).write_text(
        (store / name).read_text().replace("{", "{ ", 1).replace("reason", "Reason")
    )
    assert tree(store) != whole
    assert name in {
        step.path.name for step in verify.description(store, layout) if step.verdict != MATCHES
    }
    assert restored(store, scenes) == said
    assert tree(store) == whole


@pytest.mark.parametrize("lost", ["zarr.json", "ledger/000001.json", "ids/c/0"])
def test_the_description_of_another_store_of_equal_shapes_is_refused(
    store: Path, alike: Path, scenes: Manifest, lost: str
) -> None:
    for name in ("header.json", "zarr.json"):
        shutil.copyfile(alike / "zarr.json", store / name)
    forged.recorded(store)
    (store / lost).unlink()
    before = tree(store)
    with pytest.raises(
        StoreError, match=r"are another store's.*put this store's own header\.json there"
    ):
        restored(store, scenes)
    assert tree(store) == before


def test_the_description_of_other_images_gives_no_row_another_id(
    scenes: Manifest, tmp_path: Path
) -> None:
    """Two versions of one data set, equally many images: the network is the same, and so are the
    shapes.
    """
    ids, stores = (
        scenes.images["image_id"].to_numpy(),
        [tmp_path / "one.zarr", tmp_path / "two.zarr"],
    )
    some = [
        replace(
            scenes, source=scenes.table[scenes.table["image_id"].isin(part)].reset_index(drop=True)
        )
        for part in (ids[:16], ids[8:])
    ]
    for table, path in zip(some, stores, strict=True):
        extraction.extract(extraction.ExtractionJob(table, table.images_folder, path, ENGINE, 4, 8))
    for name in ("header.json", "zarr.json"):
        shutil.copyfile(stores[1] / "zarr.json", stores[0] / name)
    forged.recorded(stores[0])
    before = tree(stores[0])
    with pytest.raises(StoreError, match="by their sizes in bytes, its images are not"):
        restored(stores[0], some[1])
    assert tree(stores[0]) == before


def test_a_shard_of_another_store_is_a_fault(store: Path, alike: Path, scenes: Manifest) -> None:
    for name in (
        "features/c/1/0/0",
        "counts/c/1",
        "status/c/1",
        "sizes/c/1/0",
        "bytes/c/1",
        "ledger/000001.json",
    ):
        shutil.copyfile(alike / name, store / name)
    assert restored(store, scenes) == ""
    assert faults(store) == ["is another store's, by its ledger entry"]


def without_five(store: Path, scenes: Manifest) -> extraction.ExtractionJob:
    """The extraction, done, of all but the first five images."""
    ids = scenes.images["image_id"].to_numpy()
    less = replace(
        scenes, source=scenes.table[scenes.table["image_id"].isin(ids[5:])].reset_index(drop=True)
    )
    job = extraction.ExtractionJob(
        less, less.images_folder, store.with_name("less.zarr"), ENGINE, 4, 8
    )
    extraction.extract(job)
    return job


def test_a_store_that_grows_keeps_what_made_it(store: Path, scenes: Manifest) -> None:
    few = without_five(store, scenes)
    extraction.extract(replace(few, manifest=scenes))
    makers = [
        json.loads(file.read_text())["maker"]
        for folder in (few.store, store)
        for file in (folder / "ledger").iterdir()
    ]
    assert len(set(makers)) == 1
    assert (restored(few.store, scenes), faults(few.store)) == ("", [])


@pytest.mark.parametrize(
    "name", ["zarr.json", "ledger/000001.json", "status/zarr.json", "record.json"]
)
def test_json_that_is_too_deep_is_damage_as_any_other(
    store: Path, scenes: Manifest, name: str
) -> None:
    whole = tree(store)
    (store / name).write_text("[" * 200_000)
    restored(store, scenes)
    if name != "record.json":
        assert tree(store) == whole
    (store / "header.json").write_text("[" * 200_000)
    (store / "zarr.json").write_text("[" * 200_000)
    with pytest.raises(StoreError, match="not a feature store"):
        restored(store, scenes)


def test_failures_that_are_no_text_are_lost_reasons(store: Path, scenes: Manifest) -> None:
    (store / "failures.csv").write_bytes(bytes([255, 254, 0]))
    (store / "ledger" / "000001.json").unlink()
    assert "shard 1: ledger entry made" in restored(store, scenes)


def test_a_failure_of_another_shard_is_a_fault(store: Path) -> None:
    file = store / "ledger" / "000001.json"
    forged.entry(file, lambda entry: entry.update(failed={"999": "x"}))
    assert faults(store) == ["its ledger entry tells of row 999, which is of another shard"]


@pytest.mark.parametrize("shard", ["0", "99", "-1", "Infinity"])
def test_the_ledger_entry_of_another_shard_is_damage_and_made_again(
    store: Path, scenes: Manifest, shard: str
) -> None:
    whole, file = tree(store), store / "ledger" / "000001.json"
    file.write_text(file.read_text().replace('"shard": 1', f'"shard": {shard}'))
    with pytest.raises(StoreError, match=r"000001\.json: not readable, or edited; repair it"):
        extraction.extract(
            extraction.ExtractionJob(scenes, scenes.images_folder, store, ENGINE, 4, 8)
        )
    shutil.rmtree(store / "ids" / "c")
    assert "shard 1: ledger entry made" in restored(store, scenes)
    assert tree(store) == whole

"""What is damaged is seen, removed by `store verify --repair`, and made again by the command that
made the store.
"""

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

from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.make.features import extraction
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.store import FeatureStore, StoreError, shard_file, verify
from pipeline.make.features.store.layout import DONE
from pipeline.make.features.store.rewrite import rewrite
from stages.commands.stores import VerifyOptions
from stages.stores import verify_store

ENGINE = extraction.EngineSpec(
    "grid",
    {"network": "test_efficientnet", "weights": "untrained", "image_size": 64, "grid": 2},
    Runtime(),
)


@pytest.fixture(scope="module")
def extracted(scenes: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("damaged") / "grid.zarr"
    extraction.extract(job_of(scenes, store))
    return store


@pytest.fixture
def store(extracted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(extracted, tmp_path / "grid.zarr"))


def job_of(manifest: Manifest, store: Path) -> extraction.ExtractionJob:
    return extraction.ExtractionJob(manifest, manifest.images_folder, store, ENGINE, 4, 8)


def faults(store: Path) -> list[str]:
    return [fault for _, found in verify.verify(store, workers=3) for fault in found]


def remove_damaged(store: Path) -> None:
    verify_store(Paths(store.parent), None, VerifyOptions(store=store, repair=True))  # type: ignore[arg-type]


def edit(file: Path) -> None:
    file.write_text(file.read_text().replace('"images"', '"clips"').replace('"/"', '"."'))


# File, or folder -> how it is damaged, and how many of the 24 images are extracted again.
DAMAGED: dict[str, tuple[Callable[[Path], object], int]] = {
    "zarr.json": (edit, 0),
    "record.json": (Path.unlink, 0),
    "failures.csv": (lambda file: file.write_text("reason"), 0),
    "features/zarr.json": (edit, 0),
    "status/zarr.json": (Path.unlink, 0),
    "ids/c": (shutil.rmtree, 0),
    "ids": (shutil.rmtree, 0),
    "ledger/000001.json": (lambda file: file.write_text("{"), 8),
    "ledger/000002.json": (Path.unlink, 8),
    "features/c/1/0/0": (lambda file: file.write_bytes(file.read_bytes()[:-8]), 8),
    "counts/c/0": (Path.unlink, 8),
}


@pytest.mark.specification
@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_damaged_is_made_again_and_nothing_else(
    store: Path, scenes: Manifest, name: str
) -> None:
    whole = tree(store)
    damage, images = DAMAGED[name]
    damage(store / name)
    with pytest.raises(InputError, match="--repair removes what is damaged"):
        verify_store(Paths(store.parent), None, VerifyOptions(store=store))  # type: ignore[arg-type]
    remove_damaged(store)
    assert extraction.extract(job_of(scenes, store)).extracted == images
    assert tree(store) | {"record.json": b""} == whole | {"record.json": b""}
    assert faults(store) == []


def test_without_a_description_only_whole_shards_of_the_wanted_photographs_stay(
    store: Path, scenes: Manifest
) -> None:
    """Not one of another store, of a flipped bit, or of which a photograph is another."""
    job = replace(job_of(scenes, store.with_name("six.zarr")), shard_images=6)
    extraction.extract(job)
    store = job.store
    whole = tree(store)
    (store / "zarr.json").unlink()
    with pytest.raises(
        StoreError, match=r"has lost zarr\.json; run the command that made the store"
    ):
        FeatureStore(store)
    forged.entry(store / "ledger" / "000000.json", lambda entry: entry.update(maker="another"))
    forged.entry(
        store / "ledger" / "000001.json", lambda entry: entry["sources"].update({"7": "another"})
    )
    file = store / "features" / "c" / "2" / "0" / "0"
    file.write_bytes(b"\1" + file.read_bytes()[1:])
    assert extraction.extract(job).extracted == 3 * 6
    assert faults(store) == []
    assert tree(store) | {"record.json": b""} == whole | {"record.json": b""}


def test_a_store_without_a_description_that_was_made_otherwise_is_not_replaced(
    store: Path, scenes: Manifest
) -> None:
    (store / "zarr.json").unlink()
    before = tree(store)
    options = {**dict(ENGINE.options), "image_size": 96}
    other = replace(job_of(scenes, store), engine=extraction.EngineSpec("grid", options, Runtime()))
    with pytest.raises(InputError, match=r"no shard is whole and of these settings.*--if-changed"):
        extraction.extract(other)
    assert tree(store) == before
    assert extraction.extract(replace(other, if_changed="redo")).extracted == 24
    assert faults(store) == []


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


@pytest.fixture(scope="module")
def alike(scenes: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another store of the same shapes: the same network on images of another size."""
    options = {**dict(ENGINE.options), "image_size": 96}
    store = tmp_path_factory.mktemp("alike") / "grid.zarr"
    engine = extraction.EngineSpec("grid", options, Runtime())
    extraction.extract(extraction.ExtractionJob(scenes, scenes.images_folder, store, engine, 4, 8))
    return store


def test_the_description_of_another_store_of_equal_shapes_is_damage(
    store: Path, alike: Path, scenes: Manifest
) -> None:
    whole = tree(store)
    shutil.copyfile(alike / "record.json", store / "record.json")
    with pytest.raises(StoreError, match=r"record\.json is of another store than"):
        faults(store)
    assert {file.parent.name for file, _, _ in verify.changed(store, np.array([9]))} == {"ledger"}
    remove_damaged(store)
    assert extraction.extract(job_of(scenes, store)).extracted == 0
    assert tree(store) | {"record.json": b""} == whole | {"record.json": b""}


def test_a_shard_of_another_store_is_a_fault(store: Path, alike: Path) -> None:
    for name in (
        "features/c/1/0/0",
        "counts/c/1",
        "status/c/1",
        "sizes/c/1/0",
        "bytes/c/1",
        "ledger/000001.json",
    ):
        shutil.copyfile(alike / name, store / name)
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
    assert faults(few.store) == []


@pytest.mark.parametrize(
    "name", ["zarr.json", "ledger/000001.json", "status/zarr.json", "record.json"]
)
def test_json_that_is_too_deep_is_damage_as_any_other(
    store: Path, scenes: Manifest, name: str
) -> None:
    whole = tree(store)
    (store / name).write_text("[" * 200_000)
    remove_damaged(store)
    extraction.extract(job_of(scenes, store))
    assert tree(store) | {"record.json": b""} == whole | {"record.json": b""}


def test_a_failure_of_another_shard_is_a_fault(store: Path) -> None:
    file = store / "ledger" / "000001.json"
    forged.entry(file, lambda entry: entry.update(failed={"999": "x"}))
    assert faults(store) == ["its ledger entry tells of row 999, which is of another shard"]


@pytest.mark.parametrize("shard", ["0", "99", "-1", "Infinity"])
def test_the_ledger_entry_of_another_shard_is_damage(
    store: Path, scenes: Manifest, shard: str
) -> None:
    file = store / "ledger" / "000001.json"
    file.write_text(file.read_text().replace('"shard": 1', f'"shard": {shard}'))
    with pytest.raises(StoreError, match=r"000001\.json: not readable, or edited; run `pipeline"):
        extraction.extract(job_of(scenes, store))
    assert faults(store) == ["its ledger entry is not readable, or edited"]

"""A changed manifest costs what changed: images that came, went or were replaced, and splits
extracted one by one.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from folders import tree

from pipeline.foundation.artefacts import record as records
from pipeline.foundation.compute.tasks import InProcess
from pipeline.foundation.files import blake
from pipeline.foundation.manifest import Manifest, build, sample, with_checksums
from pipeline.foundation.parts.errors import InputError
from pipeline.make import training
from pipeline.make.features import extraction
from pipeline.make.features.extraction import request
from pipeline.make.features.store import FeatureStore, StoreError, ledger, verify
from pipeline.make.features.store.rewrite import rewrite

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample.render(
        tmp_path_factory.mktemp("many") / "sample", images=66, size=32, seed=1
    ).parent


@pytest.fixture
def everything(many: Path, tmp_path: Path) -> Manifest:
    folder = shutil.copytree(many / "images", tmp_path / "images")
    return build("sample", folder, many / "dataset_sample.json")


def part(whole: Manifest, images: Iterable[int]) -> Manifest:
    ids = whole.images["image_id"].to_numpy()[list(images)]
    return replace(
        whole, source=whole.table[whole.table["image_id"].isin(ids)].reset_index(drop=True)
    )


def put_others(whole: Manifest, images: Iterable[int]) -> None:
    """Replace files by other photographs of the same size in bytes, moved into place with an old
    date.
    """
    smallest = min(
        (whole.images_folder / file for file in whole.images["file"]),
        key=lambda file: file.stat().st_size,
    )
    content = smallest.read_bytes()
    for image in images:
        file = whole.images_folder / whole.images["file"][image]
        other = file.with_name("other")
        other.write_bytes(content + bytes(file.stat().st_size - len(content)))
        os.utime(other, (0, 0))
        other.replace(file)


def of(
    job: extraction.ExtractionJob, whole: Manifest, images: Iterable[int]
) -> extraction.ExtractionJob:
    return replace(
        job, manifest=part(whole, images), images_folder=whole.images_folder, shard_images=16
    )


def assert_equal(one: Path, other: Path, manifest: Manifest) -> None:
    """Image by image."""
    first, second = (FeatureStore(path).require(manifest) for path in (one, other))
    images = np.arange(len(manifest.images))
    assert first.identity == second.identity
    for name in ("ids", "counts", "sizes", "bytes", "status"):
        assert np.array_equal(first.columns(name), second.columns(name)), name
    np.testing.assert_allclose(
        first.read(images)[0], second.read(images)[0], atol=2e-3
    )  # batches differ
    assert not [fault for _, found in verify.verify(one) for fault in found]


BEFORE, AFTER = range(60), range(6, 66)
REPLACED = range(20, 26)


class Cut(Exception):
    pass


class CutShort(InProcess):
    """Ends before the last shard."""

    def each(self, function: Any, tasks: Iterable[Any], *others: Any) -> Generator[Any, None, None]:
        yield from super().each(function, list(tasks)[:-1], *others)
        raise Cut


def test_six_came_six_went_six_were_replaced(
    job: extraction.ExtractionJob, everything: Manifest, tmp_path: Path
) -> None:
    extraction.extract(of(job, everything, BEFORE))
    before = FeatureStore(job.store).require(of(job, everything, BEFORE).manifest)
    before.read(np.arange(60))  # keeps the files open
    put_others(everything, REPLACED)
    after = of(job, everything, AFTER)
    done = extraction.extract(after)
    assert done.extracted == 12
    now = FeatureStore(job.store).require(after.manifest)
    same = np.setdiff1d(np.arange(54), np.array(REPLACED) - 6)  # rows; the former are 6 later
    assert np.array_equal(now.read(same)[0], before.read(same + 6)[0])
    at_once = replace(after, store=tmp_path / "at_once.zarr")
    extraction.extract(at_once)
    assert_equal(job.store, at_once.store, after.manifest)
    assert extraction.extract(after).extracted == 0
    checksums = {
        row: checksum
        for entry in ledger.entries(job.store, FeatureStore(job.store).layout)
        for row, checksum in entry.sources.items()
    }
    files = [after.images_folder / file for file in after.manifest.images["file"]]
    assert checksums == {row: blake.of_file(file) for row, file in enumerate(files)}
    grown, expected = tree(job.store), tree(at_once.store)
    assert grown.keys() == expected.keys()
    for name in expected:
        if not name.startswith(("features", "ledger", "record")):  # batches differ
            assert grown[name] == expected[name], name


def test_shards_that_are_the_same_are_linked(
    job: extraction.ExtractionJob, everything: Manifest
) -> None:
    extraction.extract(of(job, everything, range(40)))
    before = {file: (job.store / file).stat().st_ino for file in tree(job.store) if "/c/" in file}
    extraction.extract(of(job, everything, range(50)))
    for shard, linked in enumerate([True, True, False]):
        file = f"features/c/{shard}/0/0"
        assert ((job.store / file).stat().st_ino == before[file]) == linked, file


def test_a_store_of_many_images_is_not_replaced_by_one_of_few(
    job: extraction.ExtractionJob, everything: Manifest
) -> None:
    extraction.extract(of(job, everything, range(40)))
    few = of(job, everything, range(30, 45))
    with pytest.raises(InputError, match=r"30 of its 40 images are not in the manifest.*redo"):
        extraction.extract(few)
    assert extraction.extract(replace(few, if_changed="redo")).extracted == 5


def test_a_copied_row_that_is_not_as_its_ledger_says_is_refused(
    job: extraction.ExtractionJob, everything: Manifest
) -> None:
    extraction.extract(of(job, everything, range(20)))
    file = job.store / "features" / "c" / "1" / "0" / "0"  # of images 16 to 19
    file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:])
    with pytest.raises(StoreError, match="row 16 is not as it was written; run `pipeline store"):
        extraction.extract(of(job, everything, range(25)))


def test_a_store_that_grows_is_whole_until_it_has_grown(
    job: extraction.ExtractionJob, everything: Manifest, tmp_path: Path
) -> None:
    small = replace(of(job, everything, range(20)), shard_images=5)
    extraction.extract(small)
    before = tree(job.store)
    large = replace(of(job, everything, range(40)), shard_images=5)
    with pytest.raises(Cut):
        extraction.extract(large, CutShort())
    assert tree(job.store) == before
    assert FeatureStore(job.store).require(small.manifest).done.all()
    assert extraction.extract(large).extracted == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["grid.zarr", "images"]


def test_growing_that_was_cut_short_goes_on_where_rows_are_copied(
    job: extraction.ExtractionJob, everything: Manifest, tmp_path: Path
) -> None:
    """Images 0 to 5 come before the others, so that every shard is another one."""
    extraction.extract(of(job, everything, range(6, 66)))
    everyone = of(job, everything, range(66))
    with pytest.raises(Cut):
        extraction.extract(everyone, CutShort())
    written = len(list((job.store.with_name("grid.zarr.successor") / "ledger").iterdir()))
    assert written == 4
    assert extraction.extract(everyone).extracted == 0  # the new ones were in the first shard
    extraction.extract(replace(everyone, store=tmp_path / "at_once.zarr"))
    assert_equal(job.store, tmp_path / "at_once.zarr", everyone.manifest)


def test_a_rewriting_that_was_cut_short_is_not_gone_on_with(
    job: extraction.ExtractionJob, everything: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = of(job, everything, range(20))
    extraction.extract(small)

    def cut(*arguments: object) -> None:
        raise Cut

    monkeypatch.setattr("pipeline.make.features.store.rewrite.write_shard", cut)
    with pytest.raises(Cut):
        rewrite(job.store, small.manifest, compressor="zstd")
    assert extraction.extract(of(job, everything, range(25))).extracted == 5


def test_a_rewriting_into_another_layout_than_one_that_was_cut_short_begins_anew(
    job: extraction.ExtractionJob, everything: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = of(job, everything, range(20))
    extraction.extract(small)
    before = np.asarray(zarr.open_array(job.store / "features", mode="r")[:])

    def cut(*arguments: object) -> None:
        raise Cut

    with monkeypatch.context() as cutting:
        cutting.setattr("pipeline.make.features.store.rewrite.write_shard", cut)
        with pytest.raises(Cut):
            rewrite(job.store, small.manifest, compressor="zstd")
    rewrite(job.store, small.manifest, shard_images=7)
    after = zarr.open_array(job.store / "features", mode="r")
    assert after.shards is not None
    assert after.shards[0] == 7
    np.testing.assert_array_equal(after[:], before)


def test_a_store_that_is_rewritten_while_it_is_read_is_read_on(
    job: extraction.ExtractionJob, everything: Manifest
) -> None:
    given, images = of(job, everything, range(20)), np.arange(20)
    extraction.extract(given)
    plain = FeatureStore(job.store).require(given.manifest)
    before = plain.read(images[:5])[0]
    for layout in (
        {"shard_images": 7},
        {"compressor": "zstd"},
        {"compressor": "none", "shard_images": 16},
    ):
        rewrite(job.store, given.manifest, **layout)
        features, counts = plain.read(images)
        assert np.array_equal(features[:5], before)
        assert counts.tolist() == [4] * 20
    late = FeatureStore(job.store).require(given.manifest)
    options = {**dict(job.engine.options), "grid": 1}
    other = replace(
        given, engine=extraction.EngineSpec("grid", options, job.engine.runtime), if_changed="redo"
    )
    extraction.extract(other)
    assert np.array_equal(plain.read(images)[0], features)  # of files that it has open
    with pytest.raises(
        StoreError, match="was replaced while it was read; run the same command again"
    ):
        late.read(images)


def test_an_extraction_that_was_cut_short_goes_on_with_another_manifest(
    job: extraction.ExtractionJob, everything: Manifest, tmp_path: Path
) -> None:
    with pytest.raises(Cut):
        extraction.extract(of(job, everything, BEFORE), CutShort())
    after = of(job, everything, AFTER)
    assert extraction.extract(after).extracted == 12 + 6
    extraction.extract(replace(after, store=tmp_path / "at_once.zarr"))
    assert_equal(job.store, tmp_path / "at_once.zarr", after.manifest)


def test_images_that_got_other_ids_keep_their_features(
    job: extraction.ExtractionJob, everything: Manifest
) -> None:
    """A CSV of captions numbers the images in their order: one fewer renumbers all after it."""
    extraction.extract(of(job, everything, BEFORE))
    fewer = of(job, everything, range(1, 60))
    table = fewer.manifest.table.assign(image_id=fewer.manifest.table["image_id"].factorize()[0])
    numbered = replace(fewer, manifest=replace(fewer.manifest, source=table))
    assert extraction.extract(numbered).extracted == 0
    assert FeatureStore(job.store).require(numbered.manifest).done.all()


def test_a_file_that_was_lost_is_a_failed_image(
    job: extraction.ExtractionJob, everything: Manifest
) -> None:
    given = of(job, everything, BEFORE)
    (given.images_folder / given.manifest.images["file"][7]).unlink()
    with pytest.raises(
        InputError, match=r"cannot be read, though the manifest names it.*--on-error skip"
    ):
        extraction.extract(given)
    skipping = replace(given, on_error="skip")
    assert list(extraction.extract(skipping).failed) == [7]
    assert extraction.extract(skipping).extracted == 0


def test_a_split_first_and_the_others_later(
    job: extraction.ExtractionJob, everything: Manifest
) -> None:
    given = of(job, everything, BEFORE)
    test = given.manifest.split("test")
    first = replace(given, only=request.chosen_images(given.manifest, "test", None))
    assert extraction.extract(first).extracted == len(test.image_ids)
    store = FeatureStore(job.store).require(given.manifest)
    content, identity = store.content(test.store_rows), store.identity
    assert training.usable(store, test).image_ids.tolist() == test.image_ids.tolist()
    with pytest.raises(StoreError, match="are not extracted yet"):
        training.usable(store, given.manifest.split("train"))
    assert extraction.extract(given).extracted == 60 - len(test.image_ids)
    assert extraction.extract(first).extracted == 0
    store = FeatureStore(job.store).require(given.manifest)
    assert store.done.all()
    assert (store.content(test.store_rows), store.identity) == (
        content,
        identity,
    )  # what was scored stays valid


def test_a_list_of_ids(everything: Manifest, tmp_path: Path) -> None:
    listed = tmp_path / "ids.txt"
    ids = everything.images["image_id"].tolist()
    listed.write_text(f"{ids[3]}\n\n{ids[5]}\n")
    assert request.chosen_images(everything, None, listed) == {ids[3], ids[5]}
    listed.write_text("7\nseven\n")
    with pytest.raises(InputError, match=r"line \d: expected the id of an image"):
        request.chosen_images(everything, None, listed)


def test_rows_of_a_lost_shard_are_extracted_if_they_are_wanted(
    job: extraction.ExtractionJob, everything: Manifest
) -> None:
    extraction.extract(of(job, everything, BEFORE))
    ledger.erase(job.store, 0)  # images 0 to 15, of which six are gone
    after = of(job, everything, AFTER)
    assert extraction.extract(after).extracted == 10 + 6
    assert FeatureStore(job.store).require(after.manifest).done.all()
    assert not [fault for _, found in verify.verify(job.store) for fault in found]


def test_a_replaced_file_of_the_same_size_is_seen_with_the_same_manifest(
    job: extraction.ExtractionJob, everything: Manifest, tmp_path: Path
) -> None:
    given = of(job, everything, range(20))
    given.manifest.save(tmp_path / "given.parquet")
    target = extraction.Target(
        tmp_path / "given.parquet",
        given.manifest.dataset,
        job.store,
        "grid",
        job.engine.options,
        job.engine.runtime,
        {"backend": "torch", "precision": "fp32", "dtype": job.dtype},
    )
    assert not target.is_made()
    began = time.time_ns()
    extraction.extract(given)
    target.finish(given.images_folder, began)
    assert target.is_made()
    put_others(everything, [4])
    assert not target.is_made()
    assert extraction.extract(given).extracted == 1
    assert extraction.extract(given).extracted == 0


def test_a_replaced_file_is_seen_after_the_store_was_rewritten_or_copied(
    job: extraction.ExtractionJob, everything: Manifest, tmp_path: Path
) -> None:
    """Even if another shard's photographs were compared later than it was replaced."""
    given = of(job, everything, range(20))
    extraction.extract(given)
    later = time.time() + 3600
    os.utime(ledger.file(job.store, 1), (later, later))
    put_others(everything, [4])
    copied = shutil.copytree(job.store, tmp_path / "copied.zarr", copy_function=shutil.copyfile)
    rewrite(job.store, given.manifest, compressor="zstd")
    assert extraction.extract(given).extracted == 1
    reported = with_checksums(given.manifest, tmp_path / "known")
    for manifest, extracted in ((given.manifest, 0), (reported, 1), (reported, 0)):
        assert (
            extraction.extract(replace(given, store=copied, manifest=manifest)).extracted
            == extracted
        )


def test_features_stay_those_of_the_machine_that_made_them(
    job: extraction.ExtractionJob, everything: Manifest
) -> None:
    extraction.extract(of(job, everything, BEFORE))
    records.update(job.store, machines=[{"machine": "another"}])
    after = of(job, everything, AFTER)
    extraction.extract(after)
    machines = records.load(job.store).machines
    assert machines[0] == {"machine": "another"}
    assert len(machines) == 2
    rewrite(job.store, after.manifest, compressor="zstd")
    assert records.load(job.store).machines == machines


@pytest.fixture
def second(everything: Manifest, tmp_path: Path) -> Manifest:
    """Another data set of images 20 to 65: other ids in another order, and files elsewhere under
    other names.
    """
    rows = part(everything, range(20, 66))
    folder = shutil.copytree(everything.images_folder, tmp_path / "second")
    for file in rows.images["file"]:
        (folder / file).rename(folder / f"b-{file}")
    table = rows.table.assign(
        image_id=1000 - rows.table["image_id"], file="b-" + rows.table["file"]
    )
    table = table.sort_values("image_id", kind="stable").reset_index(drop=True)
    with_checksums(Manifest(table, "second", folder), tmp_path / "known").save(
        tmp_path / "second.parquet"
    )
    return Manifest.load(tmp_path / "second.parquet")


def first_and(
    second: Manifest, job: extraction.ExtractionJob, everything: Manifest
) -> extraction.ExtractionJob:
    """The first data set's images 0 to 59 are extracted; a job for the second."""
    extraction.extract(of(job, everything, BEFORE))
    for file in second.images_folder.iterdir():  # they came after the first was extracted
        os.utime(file)
    return replace(
        job,
        manifest=replace(second, written=time.time_ns()),
        images_folder=second.images_folder,
        shard_images=16,
    )


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(file: object) -> None:
        raise AssertionError(f"{file} was read")

    monkeypatch.setattr(blake, "if_there", read)


def test_a_copied_store_serves_every_manifest_whose_photographs_it_holds(
    job: extraction.ExtractionJob,
    everything: Manifest,
    second: Manifest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    todo = first_and(second, job, everything)
    copied = replace(todo, store=shutil.copytree(job.store, tmp_path / "copied.zarr"))
    held = replace(
        todo.manifest,
        source=second.table[second.table["image_id"] > 1000 - 60].reset_index(drop=True),
    )
    first = FeatureStore(job.store).require(part(everything, BEFORE))
    ids = held.images["image_id"].to_numpy()
    values = FeatureStore(copied.store).require(held).read(np.arange(len(ids)))[0]
    row_of = {image: row for row, image in enumerate(everything.images["image_id"])}
    assert np.array_equal(values, first.read(np.array([row_of[1000 - image] for image in ids]))[0])
    with pytest.raises(
        StoreError, match="another manifest's images"
    ):  # the last six were never extracted
        FeatureStore(copied.store).require(second)
    untold = replace(held, source=held.table.drop(columns="photograph"))
    with pytest.raises(StoreError, match="another manifest's images"):
        FeatureStore(copied.store).require(untold)
    with pytest.raises(InputError, match="its images are not those of second; --if-changed redo"):
        extraction.extract(replace(copied, manifest=untold))
    forbid_reading(monkeypatch)
    assert extraction.extract(replace(copied, manifest=held)).extracted == 0
    own = FeatureStore(copied.store).require(held)
    assert own.fingerprint["dataset"] == "second"
    assert not [fault for _, faults in verify.verify(copied.store) for fault in faults]
    assert extraction.extract(replace(copied, manifest=held)).extracted == 0
    assert np.array_equal(own.columns("ids"), ids)
    assert np.array_equal(own.read(np.arange(len(ids)))[0], values)


def test_a_store_is_rewritten_for_another_data_sets_photographs(
    job: extraction.ExtractionJob, everything: Manifest, second: Manifest
) -> None:
    todo = first_and(second, job, everything)
    before = np.asarray(zarr.open_array(job.store / "features", mode="r")[:])
    held = replace(
        todo.manifest,
        source=second.table[second.table["image_id"] > 1000 - 60].reset_index(drop=True),
    )
    records.update(job.store, facts={"asked": "the first data set's images"})
    rewrite(job.store, held)
    assert "asked" not in records.load(job.store).facts
    ids = held.images["image_id"].to_numpy()
    row_before = {image: row for row, image in enumerate(everything.images["image_id"])}
    rows = [row_before[1000 - image] for image in ids]
    np.testing.assert_array_equal(np.asarray(zarr.open_array(job.store / "ids", mode="r")[:]), ids)
    after = zarr.open_array(job.store / "features", mode="r")
    np.testing.assert_array_equal(after[:], before[rows])
    store = FeatureStore(job.store)
    files = [second.images_folder / file for file in held.images["file"]]
    expected = {row: blake.of_file(file) for row, file in enumerate(files)}
    assert ledger.sources(job.store, store.layout) == expected
    assert store.fingerprint["dataset"] == "second"
    store.require(held)
    with pytest.raises(StoreError, match="another manifest's images"):
        store.require(part(everything, BEFORE))
    assert not [fault for _, faults in verify.verify(job.store) for fault in faults]
    assert extraction.extract(replace(todo, manifest=held)).extracted == 0


def test_a_photograph_that_changed_after_its_manifest_is_not_taken(
    job: extraction.ExtractionJob, everything: Manifest, second: Manifest, tmp_path: Path
) -> None:
    todo = first_and(second, job, everything)
    put_others(second, [10])  # later than the manifest
    copied = replace(todo, store=shutil.copytree(job.store, tmp_path / "copied.zarr"))
    assert extraction.extract(copied).extracted == 6 + 1  # the first data set lacks six


def test_links_that_lead_nowhere_do_not_change_the_photographs(tmp_path: Path) -> None:
    """git-annex leaves such links for photographs that were not fetched."""
    (tmp_path / "a.jpg").write_bytes(b"a")
    (tmp_path / "gone.jpg").symlink_to("nowhere")
    (tmp_path / "circle.jpg").symlink_to("circle.jpg")
    since = max(os.lstat(path).st_ctime_ns for path in tmp_path.iterdir())
    assert not request.photographs_changed(str(tmp_path), since)
    assert request.photographs_changed(str(tmp_path), since - 1)

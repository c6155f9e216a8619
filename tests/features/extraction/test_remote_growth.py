"""Stores in an object store that grow or are replaced, and runs that are cut off at any step.

The object store is fsspec's in memory: what S3 does by itself is in test_object_store.py.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pipeline.features import extraction
from pipeline.features.store import (
    FeatureStore,
    StoreError,
    remote_store,
    verify,
)
from pipeline.files import remote
from pipeline.manifest import Manifest
from pipeline.manifest.photographs import with_checksums


class Bucket(MemoryFileSystem):
    """Lists the MD5 of each file, as S3 does."""

    def find(
        self,
        path: str,
        maxdepth: int | None = None,
        withdirs: bool = False,
        detail: bool = False,
        **more: Any,
    ) -> Any:
        files = super().find(path, maxdepth, withdirs, detail, **more)
        if not detail:
            return files
        return {
            name: {**each, "ETag": hashlib.md5(self.cat_file(name)).hexdigest()}
            for name, each in files.items()
        }


@pytest.fixture(scope="module")
def bucket() -> Iterator[Path]:
    """A bucket in memory at an address of S3."""
    memory = Bucket()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            remote,
            "file_system",
            lambda path: (memory, f"/{str(remote.address(path)).partition('://')[2]}"),
        )
        yield Path("s3://in-memory")
    memory.rm("/in-memory", recursive=True)


def downloaded(store: Path, folder: Path, manifest: Manifest) -> FeatureStore:
    remote_store.download(store, folder, print, print)
    assert [fault for _, found in verify.verify(folder) for fault in found] == []
    return FeatureStore(folder).require(manifest)


def test_a_store_that_was_made_otherwise_is_left_alone_or_replaced(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    there = replace(
        job, store=tmp_path / "working.zarr", uploaded_to=place / "grid.zarr", shard_images=3
    )
    extraction.extract(there)
    before = remote.listed(place / "grid.zarr")
    other = replace(there, dtype="float32", shard_images=5)
    with pytest.raises(StoreError, match="made with other settings"):
        extraction.extract(other)
    assert remote.listed(place / "grid.zarr") == before
    assert extraction.extract(replace(other, if_changed="redo")).extracted == 24
    assert remote.listed(place / "grid.zarr.successor") == {}
    assert (
        len([name for name in remote.listed(place / "grid.zarr") if name.startswith("ledger/")])
        == 5
    )  # none is left
    extraction.extract(replace(job, dtype="float32"))
    images = np.arange(24)
    found = downloaded(place / "grid.zarr", tmp_path / "copy.zarr", job.manifest)
    assert np.array_equal(
        found.read(images)[0], FeatureStore(job.store).require(job.manifest).read(images)[0]
    )


@pytest.fixture(scope="module")
def half(bucket: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Where the store of the first twelve images is kept once it was made: its working copy, and
    its files in S3.
    """
    return tmp_path_factory.mktemp("half") / "working.zarr", bucket / "half"


@pytest.fixture
def growing(
    place: Path,
    scenes: Manifest,
    job: extraction.ExtractionJob,
    half: tuple[Path, Path],
    tmp_path: Path,
) -> extraction.ExtractionJob:
    """All images, for a store in S3 that has four shards, of all but the last twelve."""
    begun = replace(
        job, store=tmp_path / "working.zarr", uploaded_to=place / "grid.zarr", shard_images=3
    )
    working, there = half
    if not working.exists():
        extraction.extract(replace(begun, uploaded_to=there, manifest=first(scenes, 12)))
        begun.store.rename(working)
    shutil.copytree(working, begun.store)
    remote.copy_on_server(there, place / "grid.zarr", [*remote.listed(there)])
    return begun


def first(manifest: Manifest, images: int, dataset: str = "sample") -> Manifest:
    """The first images, as a data set."""
    rows = manifest.table[
        manifest.table["image_id"].isin(manifest.images["image_id"].to_numpy()[:images])
    ]
    return replace(manifest, source=rows.reset_index(drop=True), dataset=dataset)


def cut_off(
    job: extraction.ExtractionJob,
    number: int,
    monkeypatch: pytest.MonkeyPatch,
    what: str = "/features/c/",
) -> None:
    """Extract until such a file is sent, by default a shard's features; they are counted from 1."""
    send, sent = remote.write, []

    def failing(path: Path, file: Path) -> None:
        sent.extend([path] if what in str(path) else [])
        if len(sent) == number:
            raise OSError("the connection is lost")
        send(path, file)

    with monkeypatch.context() as broken:
        broken.setattr(remote, "write", failing)
        with pytest.raises(OSError, match="the connection is lost"):
            extraction.extract(job)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["there", "on another machine"])
@pytest.mark.parametrize(
    "grown", [False, True], ids=["the same", "a manifest that has grown since"]
)
def test_growing_goes_on_with_the_shards_that_are_up(
    growing: extraction.ExtractionJob,
    grown: bool,
    elsewhere: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = growing.uploaded_to
    assert store is not None
    before = replace(growing, manifest=first(growing.manifest, 18)) if grown else growing
    cut_off(before, 2 if grown else 3, monkeypatch)
    assert len(downloaded(store, tmp_path / "before.zarr", first(growing.manifest, 12)).rows) == 12
    if elsewhere:
        shutil.rmtree(growing.store)
        shutil.rmtree(growing.store.with_name("working.zarr.successor"))
    assert extraction.extract(growing).extracted == (9 if grown else 6)
    assert len(downloaded(store, tmp_path / "after.zarr", growing.manifest).rows) == 24


@pytest.mark.parametrize("redo", [False, True], ids=["grown", "replaced"])
def test_another_data_set_takes_the_shards_of_a_successor_that_was_cut_off(
    growing: extraction.ExtractionJob, redo: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entries name another maker; the store has other shards of the same numbers."""
    store = growing.uploaded_to
    assert store is not None
    wanted = replace(growing, dtype="float32", if_changed="redo") if redo else growing
    cut_off(wanted, 3, monkeypatch)
    other = replace(
        wanted, manifest=first(with_checksums(growing.manifest, tmp_path / "known"), 24, "other")
    )
    assert extraction.extract(other).extracted == (18 if redo else 6)
    assert remote.listed(remote_store.successor(store)) == {}
    found = downloaded(store, tmp_path / "copy.zarr", other.manifest)
    extraction.extract(replace(other, store=tmp_path / "at-once.zarr", uploaded_to=None))
    rows = np.arange(24)
    assert np.array_equal(
        found.read(rows)[0],
        FeatureStore(tmp_path / "at-once.zarr").require(other.manifest).read(rows)[0],
    )


class Steps:
    """The changes of an object store, of which one is cut off; they are counted from 0."""

    def __init__(self, cut: int) -> None:
        self.cut, self.done = cut, 0
        self.last: tuple[Any, ...] = ()

    def count(self, patch: pytest.MonkeyPatch, *names: str) -> None:
        """Count calls of these functions of `remote` from now on."""
        for name in names:
            patch.setattr(remote, name, partial(self._next, getattr(remote, name)))

    def _next(self, do: Any, *arguments: Any) -> None:
        self.last = arguments
        if self.done == self.cut:
            raise OSError("the connection is lost")
        self.done += 1
        do(*arguments)


@pytest.mark.parametrize("step", [0, 1, 6, 13])
def test_a_change_of_a_successor_s_description_that_is_cut_off_is_ended(
    growing: extraction.ExtractionJob, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest has grown since the successor was begun; another machine goes on."""
    store, steps = growing.uploaded_to, Steps(step)
    assert store is not None
    cut_off(replace(growing, manifest=first(growing.manifest, 18)), 2, monkeypatch)

    with monkeypatch.context() as broken:
        steps.count(broken, "write", "delete", "copy_on_server")
        with pytest.raises(OSError, match="the connection is lost"):
            extraction.extract(growing)
    assert not any("/features/c/" in str(argument) for argument in steps.last), (
        "only the description is sent by then"
    )
    shutil.rmtree(growing.store)
    shutil.rmtree(growing.store.with_name("working.zarr.successor"))
    assert extraction.extract(growing).extracted in (
        9,
        12,
    )  # shards of a successor without zarr.json are lost
    assert remote.listed(remote_store.successor(store)) == {}
    downloaded(store, tmp_path / "after.zarr", growing.manifest)


def test_a_copy_is_refused_where_a_store_is_being_replaced(
    growing: extraction.ExtractionJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The successor would take shards of the copy for its store's."""
    store, delete = growing.uploaded_to, remote.delete
    assert store is not None

    def losing(place: Path, names: list[str]) -> None:
        delete(place, names)
        if place == store and names == ["zarr.json"]:
            raise OSError("the connection is lost")

    with monkeypatch.context() as broken:
        broken.setattr(remote, "delete", losing)
        with pytest.raises(OSError, match="the connection is lost"):
            extraction.extract(growing)
    local = replace(growing, store=tmp_path / "other.zarr", uploaded_to=None, dtype="float32")
    extraction.extract(local)
    with pytest.raises(
        StoreError, match=r"grid\.zarr: another store is being made there; run again the command"
    ):
        remote_store.upload(local.store, store, print, print)
    assert extraction.extract(growing).extracted == 0
    assert len(downloaded(store, tmp_path / "copy.zarr", growing.manifest).rows) == 24


def test_a_store_of_another_data_set_that_has_all_images_becomes_this_ones(
    growing: extraction.ExtractionJob, tmp_path: Path
) -> None:
    assert growing.uploaded_to is not None
    other = first(with_checksums(growing.manifest, tmp_path / "known"), 12, "other")
    assert extraction.extract(replace(growing, manifest=other)).extracted == 0
    assert len(downloaded(growing.uploaded_to, tmp_path / "copy.zarr", other).rows) == 12


@pytest.mark.parametrize("redo", [False, True], ids=["grown", "replaced"])
def test_nothing_is_deleted_for_a_successor_that_is_not_whole(
    growing: extraction.ExtractionJob, redo: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the store was deleted by hand, or two runs wrote it; shards of a store of another
    dtype are no help.
    """
    store = growing.uploaded_to
    assert store is not None
    if redo:  # of the store's own images
        growing = replace(
            growing, manifest=first(growing.manifest, 12), dtype="float32", if_changed="redo"
        )
    cut_off(growing, 2, monkeypatch)
    remote.delete(store, ["zarr.json"])
    before = remote.found(store), remote.found(remote_store.successor(store))
    with pytest.raises(StoreError, match=r"is missing here and in grid\.zarr\.successor; delete"):
        extraction.extract(growing)
    assert (remote.found(store), remote.found(remote_store.successor(store))) == before


def test_a_place_with_other_files_is_no_place_for_a_store(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    """A store that is replaced is deleted with all that lies there; old shards would be taken for
    this store's.
    """
    (tmp_path / "1.jpg").write_bytes(b"a photograph")
    remote.write(place / "photographs" / "1.jpg", tmp_path / "1.jpg")
    into = replace(job, store=tmp_path / "working.zarr", uploaded_to=place / "photographs")
    with pytest.raises(
        StoreError, match=r"photographs: has 1 file that .* '1.jpg'; choose another place"
    ):
        extraction.extract(into)
    extraction.extract(job)
    with pytest.raises(
        StoreError, match=r"photographs: has 1 file that .* '1.jpg'; choose another place"
    ):
        remote_store.upload(job.store, place / "photographs", print, print)
    assert [*remote.listed(place / "photographs")] == ["1.jpg"]
    remote_store.upload(job.store, place / "s.zarr", print, print)
    remote.delete(place / "s.zarr", ["zarr.json"])
    with pytest.raises(StoreError, match=r"has lost its zarr.json"):
        extraction.extract(replace(into, uploaded_to=place / "s.zarr"))


def test_an_extraction_that_was_cut_off_before_zarr_json_is_begun_again(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = replace(job, store=tmp_path / "working.zarr", uploaded_to=place / "grid.zarr")
    cut_off(into, 1, monkeypatch, "grid.zarr/zarr.json")
    assert "zarr.json" not in remote.listed(place / "grid.zarr")
    assert extraction.extract(into).extracted == 24
    downloaded(place / "grid.zarr", tmp_path / "copy.zarr", job.manifest)


@pytest.mark.parametrize("redo", [False, True], ids=["grown", "replaced"])
@pytest.mark.parametrize("step", range(6))
def test_a_replacement_that_is_cut_off_at_any_step_is_ended(
    growing: extraction.ExtractionJob,
    half: tuple[Path, Path],
    step: int,
    redo: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, steps = growing.uploaded_to, Steps(step)
    assert store is not None
    wanted = replace(growing, dtype="float32", if_changed="redo") if redo else growing

    with monkeypatch.context() as broken:
        take_place = remote_store.take_place

        def taking(*places: Path) -> None:
            steps.count(broken, "delete", "copy_on_server")
            take_place(*places)

        broken.setattr(remote_store, "take_place", taking)
        with pytest.raises(OSError, match="the connection is lost"):
            extraction.extract(wanted)
    if step not in (0, 4, 5):  # else it is the former or the new store
        with pytest.raises(StoreError, match="no feature store there"):
            remote_store.download(store, tmp_path / "between.zarr", print, print)
    else:
        remote_store.download(store, tmp_path / "between.zarr", print, print)
    shutil.rmtree(wanted.store, ignore_errors=True)
    shutil.rmtree(remote_store.successor(wanted.store), ignore_errors=True)
    assert extraction.extract(wanted).extracted == 0
    assert remote.listed(remote_store.successor(store)) == {}
    found = downloaded(store, tmp_path / "after.zarr", growing.manifest)
    at_once = half[0].with_name(f"at-once-{wanted.dtype}.zarr")
    if not at_once.exists():
        extraction.extract(replace(wanted, store=tmp_path / "at-once.zarr", uploaded_to=None))
        (tmp_path / "at-once.zarr").rename(at_once)
    images = np.arange(24)
    assert np.array_equal(found.read(images)[0], FeatureStore(at_once).read(images)[0])

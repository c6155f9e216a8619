"""Images, manifests and stores in S3, against a local server: what comes out is what comes out of
files.
"""

from __future__ import annotations

import shutil
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import new_stores
import numpy as np
import packed
import pytest
import s3_server
from folders import tree
from numcodecs.zstd import Zstd
from preloaded import Commands

from pipeline.features import extraction
from pipeline.features.extractors import Runtime
from pipeline.features.store import (
    Extra,
    FeatureStore,
    Shard,
    StoreError,
    StoreLayout,
    ledger,
    remote_reader,
    remote_store,
    shard_file,
    verify,
    write_shard,
)
from pipeline.features.store.remote_reader import RemoteFeatureStore
from pipeline.files import remote
from pipeline.files.digest import digest
from pipeline.manifest import Manifest, build

ENGINE = "features.light.grid={engine: grid, network: test_efficientnet, weights: untrained, image_size: 64, grid: 2}"
PARAMS = Path(__file__).parents[3] / "params.yaml"


def downloaded(store: Path, folder: Path, manifest: Manifest) -> FeatureStore:
    remote_store.download(store, folder, print, print)
    assert [fault for _, found in verify.verify(folder) for fault in found] == []
    return FeatureStore(folder).require(manifest)


def put(folder: Path, place: Path) -> Path:
    for file in folder.rglob("*"):
        if file.is_file():
            remote.write(place / file.relative_to(folder), file)
    return place


# The features of the fourth shard, as they are sent, kill the process: however fast it is, three
# shards are there.
KILLED = """
import os, signal
from pipeline.files import remote
send, shards = remote.write, []
def killing(path, *file):
    shards.extend([path] if "/features/c/" in str(path) else [])
    if len(shards) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    send(path, *file)
remote.write = killing
"""


def test_paths_and_addresses() -> None:
    assert (
        remote.address(Path("s3://bucket/a/b.tar"))
        == remote.address("s3://bucket/a/b.tar")
        == "s3://bucket/a/b.tar"
    )
    for here in ("s3", "photos/s3:/x", "/s3:/x", "c:/x", "file:///x", "http://host/x"):
        assert remote.address(Path(here)) is None


def test_tars_killed_and_resumed_equal_files(
    place: Path, scenes: Manifest, commands: Commands, tmp_path: Path
) -> None:
    """Tars and the store are in S3; the process is killed in the middle; what it had written
    stays.
    """
    tars = put(packed.tars(scenes, tmp_path / "tars"), place / "tars")
    made = build("sample", tars, tars)
    made.save(place / "sample.parquet")
    commands(
        "pipeline",
        "store",
        "copy",
        remote.address(place / "sample.parquet"),
        tmp_path / "data" / "sample.parquet",
    )
    store, run = (
        place / "grid.zarr",
        (
            "pipeline",
            "extract",
            "--feature",
            "grid",
            "--dataset",
            "sample",
            "--out",
            remote.address(place / "grid.zarr"),
            "-S",
            ENGINE,
            "-S",
            "extract.batch_size=1",
            "-S",
            "extract.shard_images=2",
            "--params",
            PARAMS,
            "--root",
            tmp_path,
        ),
    )
    commands(*run, BEFORE=KILLED, code=-signal.SIGKILL)
    done = [name for name in remote.listed(store) if name.startswith("ledger/")]
    assert len(done) == 3
    second = commands(*run)
    again = [name for name in remote.listed(store) if name.startswith("ledger/")]
    assert len(again) == 12
    assert (
        f"{len(scenes.images) - 6} images" in second.stdout
    )  # the finished shards were not extracted again
    assert "nothing to do" in commands(*run).stdout
    assert remote_store.download(store, tmp_path / "grid.zarr", print, print) == 12
    assert [fault for _, found in verify.verify(tmp_path / "grid.zarr") for fault in found] == []

    files = extraction.ExtractionJob(
        scenes,
        scenes.images_folder,
        tmp_path / "files.zarr",
        extraction.EngineSpec(
            "grid",
            {"network": "test_efficientnet", "weights": "untrained", "image_size": 64, "grid": 2},
            Runtime(backend="auto"),
        ),
        1,
        2,
    )
    extraction.extract(files)
    one, two = (
        FeatureStore(tmp_path / "grid.zarr").require(made),
        FeatureStore(files.store).require(scenes),
    )
    images = np.arange(len(scenes.images))
    assert np.array_equal(one.read(images)[0], two.read(images)[0])
    assert one.content(images) == two.content(images)


def test_plain_images_in_s3_and_a_manifest_that_grows(
    place: Path, scenes: Manifest, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    images = put(scenes.images_folder, place / "images")
    there = replace(scenes, images_folder=images)
    there.save(place / "data" / "sample.parquet")
    loaded = Manifest.load(place / "data" / "sample.parquet")
    assert (loaded.images_folder, loaded.digest) == (images, scenes.digest)
    ids = scenes.images["image_id"].to_numpy()
    less = replace(
        loaded, source=loaded.table[loaded.table["image_id"].isin(ids[3:])].reset_index(drop=True)
    )
    working = tmp_path / "working.zarr"
    begun = replace(
        job, manifest=less, images_folder=images, store=working, uploaded_to=place / "grid.zarr"
    )
    assert extraction.extract(begun).extracted == len(ids) - 3
    assert extraction.extract(replace(begun, manifest=loaded)).extracted == 3
    shutil.rmtree(working)
    assert extraction.extract(replace(begun, manifest=loaded)).extracted == 0
    remote_store.download(place / "grid.zarr", tmp_path / "copy.zarr", print, print)
    extraction.extract(job)
    one, two = (
        FeatureStore(tmp_path / "copy.zarr").require(loaded),
        FeatureStore(job.store).require(scenes),
    )
    np.testing.assert_allclose(
        one.read(np.arange(len(ids)))[0], two.read(np.arange(len(ids)))[0], atol=2e-3
    )


def test_a_resume_lists_and_does_not_ask_for_each_shard(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    there = replace(
        job, store=tmp_path / "working.zarr", uploaded_to=place / "grid.zarr", shard_images=2
    )
    extraction.extract(there)
    with s3_server.counted() as again:
        assert extraction.extract(there).tried == 0
    assert len(again) <= 5, again
    assert not [each for each in again if each.endswith(("json", "/0"))]
    shutil.rmtree(there.store)
    with s3_server.counted() as elsewhere:
        assert extraction.extract(there).tried == 0
    assert len([each for each in elsewhere if "/ledger/" in each]) == 12
    assert len(elsewhere) <= 5 + 2 * 12 + 13, (
        elsewhere
    )  # an entry and the files' sizes of each, and the description
    extraction.extract(replace(job, shard_images=2))
    remote_store.upload(job.store, place / "copy.zarr", print, print)
    with s3_server.counted() as copied:
        assert remote_store.upload(job.store, place / "copy.zarr", print, print) == 0
    assert len(copied) <= 2, copied


def test_copies_up_and_down_are_the_same_bytes_and_go_on(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    extraction.extract(job)
    shards = len(list((job.store / "ledger").iterdir()))
    assert remote_store.upload(job.store, place / "s.zarr", print, print) == shards
    assert remote_store.upload(job.store, place / "s.zarr", print, print) == 0
    assert remote_store.download(place / "s.zarr", tmp_path / "back.zarr", print, print) == shards
    assert tree(tmp_path / "back.zarr") == tree(job.store)
    damaged = ledger.shard_file(job.store, "features", 0, 3)
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    remote.write(place / "s.zarr" / damaged.relative_to(job.store), damaged)
    with pytest.raises(StoreError, match="shard 0 is not as it was written"):
        remote_store.download(place / "s.zarr", tmp_path / "other.zarr", print, print)
    assert not (tmp_path / "other.zarr").exists()


def test_another_store_is_not_overwritten_by_a_copy(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    extraction.extract(job)
    (tmp_path / "other.json").write_text("{}")
    remote.write(place / "s.zarr" / "zarr.json", tmp_path / "other.json")
    with pytest.raises(StoreError, match="holds another store"):
        remote_store.upload(job.store, place / "s.zarr", print, print)
    assert list(remote.listed(place / "s.zarr")) == ["zarr.json"]


def test_a_copy_that_ended_within_a_file_goes_on(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extraction.extract(job)
    remote_store.upload(job.store, place / "s.zarr", print, print)
    connect = remote.file_system

    def ends_within(path: Path) -> tuple[object, str]:
        files, name = connect(path)

        def get(there: list[str], here: list[str]) -> None:
            for source, target in zip(there, here, strict=True):
                Path(target).write_bytes(
                    files.cat_file(source)[: 5 if "features/c" in source else None]
                )
            if any("features/c" in source for source in there):
                raise OSError("the connection is lost")

        return SimpleNamespace(get=get, find=files.find, cat_file=files.cat_file), name

    with monkeypatch.context() as broken:
        broken.setattr(remote, "file_system", ends_within)
        with pytest.raises(OSError, match="the connection is lost"):
            remote_store.download(place / "s.zarr", tmp_path / "back.zarr", print, print)
    remote_store.download(place / "s.zarr", tmp_path / "back.zarr", print, print)
    found = tree(tmp_path / "back.zarr")
    assert {name: found.get(name) for name in tree(job.store)} == tree(job.store)


def test_keys_that_lead_out_of_the_folder_are_refused(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extraction.extract(job)
    remote_store.upload(job.store, place / "s.zarr", print, print)
    found = remote.found
    monkeypatch.setattr(
        remote, "found", lambda folder: found(folder) | {"../outside": remote.Listed(4, "")}
    )
    for bring in (
        lambda: remote_store.download(place / "s.zarr", tmp_path / "back.zarr", print, print),
        lambda: remote_store.take_up(place / "s.zarr", tmp_path / "working.zarr"),
    ):
        with pytest.raises(StoreError, match=r"'\.\./outside': would be written outside"):
            bring()


@pytest.mark.parametrize("compressor", ["none", "zstd"])
def test_a_batch_costs_a_request_for_each_shard_it_touches(
    place: Path,
    job: extraction.ExtractionJob,
    compressor: Any,
    tmp_path: Path,
    rng: np.random.Generator,
) -> None:
    """Through zarr and fsspec it costs 16, or image by image 256."""
    extraction.extract(replace(job, compressor=compressor, shard_images=3))
    remote_store.upload(job.store, place / "s.zarr", print, print)
    here = FeatureStore(job.store).require(job.manifest)
    there = RemoteFeatureStore(place / "s.zarr", tmp_path / "described.zarr").require(job.manifest)
    batch = rng.integers(0, 24, 128)
    there.read(np.arange(24))  # with the shards' indices
    with s3_server.counted() as requests:
        features, counts = there.read(batch)
    assert len(requests) == 8, requests
    assert np.array_equal(features, here.read(batch)[0])
    assert np.array_equal(counts, here.read(batch)[1])
    with s3_server.counted() as requests:
        again = RemoteFeatureStore(place / "s.zarr", tmp_path / "described.zarr")
    assert len(requests) == 1, requests
    remote.delete(place / "s.zarr", ["features/c/2/0/0"])
    with pytest.raises(StoreError, match="cannot be read"):
        again.read(np.array([7]))


def test_a_reader_leaves_what_else_lies_in_its_folder(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    extraction.extract(job)
    remote_store.upload(job.store, place / "s.zarr", print, print)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(StoreError, match="no feature store there"):
        RemoteFeatureStore(place / "another.zarr", tmp_path / "mine")
    assert len(RemoteFeatureStore(place / "s.zarr", tmp_path / "mine").rows) == 24
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize(
    "chunk",
    [
        b"\x28\xb5\x2f\xfd\xe0" + (1 << 44).to_bytes(8, "little") + b"\x01\x00\x00",
        Zstd().encode(bytes(2)),
        None,
    ],
    ids=["of 16 TB", "of one number", "missing"],
)
def test_damaged_chunks_are_noticed(
    place: Path, job: extraction.ExtractionJob, chunk: bytes | None, tmp_path: Path
) -> None:
    """Here and there: the features of the first image are others."""
    extraction.extract(replace(job, compressor="zstd"))
    new_stores.put_chunk(
        ledger.shard_file(job.store, "features", 0, 3),
        FeatureStore(job.store).layout.shard_rows,
        chunk,
    )
    remote_store.upload(job.store, place / "s.zarr", print, print)
    for store in (FeatureStore(job.store), RemoteFeatureStore(place / "s.zarr", tmp_path)):
        with pytest.raises(StoreError, match="damaged"):
            store.read(np.array([0]))


def test_a_chunk_of_whole_numbers_that_holds_less_is_noticed(place: Path, tmp_path: Path) -> None:
    """Here and there; -1 has the bytes that nothing else has been written to."""
    sizes = StoreLayout(2, 3, 4, 2, "zstd", {"labels": Extra((), "int16")})
    shards = new_stores.prepare(tmp_path / "s.zarr", sizes, {}, np.arange(2), np.arange(2))
    shard = Shard.empty(sizes, shards[0])
    for row in shard.rows:
        shard.fill(row, np.ones((3, 4), np.float16), (1, 1), {"labels": np.full(3, -1)})
    write_shard(tmp_path / "s.zarr", sizes, shard, digest({}))
    file, found = ledger.shard_file(tmp_path / "s.zarr", "labels", 0, 2), []
    for chunk in (None, Zstd().encode(bytes(4))):
        if chunk:
            new_stores.put_chunk(file, 2, chunk)
        there = put(tmp_path / "s.zarr", place / ("short.zarr" if chunk else "whole.zarr"))
        for store in (FeatureStore(tmp_path / "s.zarr"), RemoteFeatureStore(there, tmp_path)):
            try:
                found.append(store.extra("labels", np.array([0]))[0].tolist())
            except StoreError as error:
                found.append("damaged" in str(error))
    assert found == [[-1] * 3] * 2 + [True] * 2
    assert "labels" not in shard_file.read(tmp_path / "s.zarr", sizes, 0).arrays


def test_images_far_apart_in_a_shard_are_read_apart(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extraction.extract(job)
    remote_store.upload(job.store, place / "s.zarr", print, print)
    there = RemoteFeatureStore(place / "s.zarr", tmp_path / "described.zarr")
    monkeypatch.setattr(remote_reader, "GAP", there.read(np.array([0]))[0].nbytes)
    with s3_server.counted() as requests:
        found = there.read(np.array([7, 1, 0]))[0]
    assert len(requests) == 2, requests
    assert np.array_equal(found, FeatureStore(job.store).read(np.array([7, 1, 0]))[0])


def test_nothing_there_is_one_line(place: Path, commands: Commands, tmp_path: Path) -> None:
    for source in (
        "s3://no-such-bucket/x.zarr",
        remote.address(place / "x.zarr"),
        "s3://no-such-bucket/x.parquet",
    ):
        said = commands("pipeline", "store", "copy", source, tmp_path / "x.zarr", code=None)
        assert said.returncode in (1, 2)
        assert said.stderr.count("\n") == 1, said.stderr


def of_features(requests: list[str], method: str) -> list[str]:
    return [each for each in requests if each.startswith(method) and "/features/c/" in each]


def test_a_store_grows_by_its_new_shards_alone(
    place: Path, job: extraction.ExtractionJob, scenes: Manifest, tmp_path: Path
) -> None:
    growing = replace(
        job, store=tmp_path / "working.zarr", uploaded_to=place / "grid.zarr", shard_images=3
    )
    rows = scenes.table[scenes.table["image_id"].isin(scenes.images["image_id"].to_numpy()[:12])]
    extraction.extract(
        replace(growing, manifest=replace(scenes, source=rows.reset_index(drop=True)))
    )
    with s3_server.counted() as requests:
        assert extraction.extract(growing).extracted == 12
    assert of_features(requests, "GET") == []
    sent = of_features(requests, "PUT")
    assert len(sent) == 8  # each of four shards: up there, and to its place on the server
    assert all(f"/features/c/{shard}/0/0" in "".join(sent) for shard in range(4, 8))
    found = downloaded(place / "grid.zarr", tmp_path / "copy.zarr", scenes)
    extraction.extract(replace(growing, store=tmp_path / "at-once.zarr", uploaded_to=None))
    images = np.arange(24)
    assert np.array_equal(
        found.read(images)[0], FeatureStore(tmp_path / "at-once.zarr").read(images)[0]
    )


def test_markers_of_folders_are_no_files(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    """Consoles of S3 make them."""
    address = remote.address(place / "grid.zarr")
    assert address is not None
    key = address.removeprefix(f"s3://{s3_server.BUCKET}/")
    for folder in (f"{key}/", f"{key}/features/"):
        boto3.client("s3").put_object(Bucket=s3_server.BUCKET, Key=folder, Body=b"")
    into = replace(job, store=tmp_path / "working.zarr", uploaded_to=place / "grid.zarr")
    assert extraction.extract(into).extracted == 24
    downloaded(place / "grid.zarr", tmp_path / "copy.zarr", job.manifest)

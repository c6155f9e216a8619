"""Images and manifests in S3, and stores copied there and back, against a local server."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import boto3
import numpy as np
import packed
import pytest
import s3_server
from folders import tree

from pipeline.foundation.files import remote
from pipeline.foundation.manifest import Manifest
from pipeline.make.features import extraction
from pipeline.make.features.store import FeatureStore, StoreError, copying, ledger
from stages import cli

pytestmark = pytest.mark.slow


def put(folder: Path, place: Path) -> Path:
    for file in folder.rglob("*"):
        if file.is_file():
            remote.write(place / file.relative_to(folder), file)
    return place


def test_paths_and_addresses() -> None:
    assert (
        remote.address(Path("s3://bucket/a/b.tar"))
        == remote.address("s3://bucket/a/b.tar")
        == "s3://bucket/a/b.tar"
    )
    for here in ("s3", "photos/s3:/x", "/s3:/x", "c:/x", "file:///x", "http://host/x"):
        assert remote.address(Path(here)) is None


def test_images_in_s3_give_the_features_of_files(
    place: Path, scenes: Manifest, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    """Files by a manifest that lies there, too, and tars."""
    extraction.extract(job)
    features = FeatureStore(job.store).require(scenes).read(np.arange(24))[0]
    images = put(scenes.images_folder, place / "images")
    replace(scenes, images_folder=images).save(place / "data" / "sample.parquet")
    loaded = Manifest.load(place / "data" / "sample.parquet")
    assert (loaded.images_folder, loaded.digest) == (images, scenes.digest)
    tars = packed.tars(scenes, tmp_path / "tars")
    there = replace(tars, images_folder=put(tars.images_folder, place / "tars"))
    for number, manifest in enumerate([loaded, there]):
        remote_job = replace(
            job,
            manifest=manifest,
            images_folder=manifest.images_folder,
            store=tmp_path / f"{number}.zarr",
        )
        assert extraction.extract(remote_job).extracted == 24
        rows = np.arange(24)
        store = FeatureStore(remote_job.store).require(manifest)
        assert np.array_equal(store.read(rows)[0], features)


def test_copies_up_and_down_are_the_same_bytes_and_go_on(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    extraction.extract(job)
    shards = len(list((job.store / "ledger").iterdir()))
    assert copying.upload(job.store, place / "s.zarr", print, print) == shards
    with s3_server.counted() as requests:
        assert copying.upload(job.store, place / "s.zarr", print, print) == 0
    assert len(requests) <= 2, requests  # it lists, and does not ask for each shard
    assert copying.download(place / "s.zarr", tmp_path / "back.zarr", print, print) == shards
    assert tree(tmp_path / "back.zarr") == tree(job.store)
    damaged = ledger.shard_file(job.store, "features", 0, 3)
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    remote.write(place / "s.zarr" / damaged.relative_to(job.store), damaged)
    with pytest.raises(StoreError, match="shard 0 is not as it was written"):
        copying.download(place / "s.zarr", tmp_path / "other.zarr", print, print)
    assert not (tmp_path / "other.zarr").exists()


def test_another_store_is_not_overwritten_by_a_copy(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    extraction.extract(job)
    (tmp_path / "other.json").write_text("{}")
    remote.write(place / "s.zarr" / "zarr.json", tmp_path / "other.json")
    with pytest.raises(StoreError, match="holds another store"):
        copying.upload(job.store, place / "s.zarr", print, print)
    assert list(remote.listed(place / "s.zarr")) == ["zarr.json"]


def test_a_place_with_other_files_is_no_place_for_a_store(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    (tmp_path / "1.jpg").write_bytes(b"a photograph")
    remote.write(place / "photographs" / "1.jpg", tmp_path / "1.jpg")
    extraction.extract(job)
    with pytest.raises(
        StoreError, match=r"photographs: has 1 file that .* '1.jpg'; choose another place"
    ):
        copying.upload(job.store, place / "photographs", print, print)
    assert [*remote.listed(place / "photographs")] == ["1.jpg"]


@pytest.mark.parametrize("last", ["features/c/1/0/0", "record.json", "zarr.json"])
def test_a_copy_that_was_cut_off_on_the_way_up_goes_on(
    place: Path,
    job: extraction.ExtractionJob,
    tmp_path: Path,
    last: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until zarr.json is there, which is last, there is no store."""
    job = replace(job, shard_images=8)
    extraction.extract(job)
    write = remote.write

    def cut_off(path: Path, file: Path) -> None:
        if path == place / "s.zarr" / last:
            raise OSError("the connection is lost")
        write(path, file)

    with monkeypatch.context() as broken:
        broken.setattr(remote, "write", cut_off)
        with pytest.raises(OSError, match="the connection is lost"):
            copying.upload(job.store, place / "s.zarr", print, print)
    with pytest.raises(StoreError, match="no feature store there"):
        copying.download(place / "s.zarr", tmp_path / "back.zarr", print, print)
    left = 2 if last == "features/c/1/0/0" else 0
    assert copying.upload(job.store, place / "s.zarr", print, print) == left
    copying.download(place / "s.zarr", tmp_path / "back.zarr", print, print)
    assert tree(tmp_path / "back.zarr") == tree(job.store)


def test_markers_of_folders_are_no_files(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    """Consoles of S3 make them."""
    address = remote.address(place / "s.zarr")
    assert address is not None
    key = address.removeprefix(f"s3://{s3_server.BUCKET}/")
    for folder in (f"{key}/", f"{key}/features/"):
        boto3.client("s3").put_object(Bucket=s3_server.BUCKET, Key=folder, Body=b"")
    extraction.extract(job)
    copying.upload(job.store, place / "s.zarr", print, print)
    copying.download(place / "s.zarr", tmp_path / "back.zarr", print, print)
    assert tree(tmp_path / "back.zarr") == tree(job.store)


def test_a_copy_that_ended_within_a_file_goes_on(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extraction.extract(job)
    copying.upload(job.store, place / "s.zarr", print, print)
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
            copying.download(place / "s.zarr", tmp_path / "back.zarr", print, print)
    copying.download(place / "s.zarr", tmp_path / "back.zarr", print, print)
    found = tree(tmp_path / "back.zarr")
    assert {name: found.get(name) for name in tree(job.store)} == tree(job.store)


def test_keys_that_lead_out_of_the_folder_are_refused(
    place: Path, job: extraction.ExtractionJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extraction.extract(job)
    copying.upload(job.store, place / "s.zarr", print, print)
    found = remote.found
    monkeypatch.setattr(
        remote, "found", lambda folder: found(folder) | {"../outside": remote.Listed(4, "")}
    )
    with pytest.raises(StoreError, match=r"'\.\./outside': would be written outside"):
        copying.download(place / "s.zarr", tmp_path / "back.zarr", print, print)


def test_nothing_there_is_one_line(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for source in (
        "s3://no-such-bucket/x.zarr",
        remote.address(place / "x.zarr"),
        "s3://no-such-bucket/x.parquet",
    ):
        words = ["pipeline", "store", "copy", source, str(tmp_path / "x.zarr")]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code in (1, 2)
        said = capfd.readouterr().err
        assert said.count("\n") == 1, said

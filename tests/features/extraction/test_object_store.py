"""Images, manifests and stores in S3, against a local server: what comes out is what comes out of files."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import packed
import pytest
import s3_server
from folders import tree
from preloaded import Commands

from pipeline.features import extraction
from pipeline.features.extractors import Runtime
from pipeline.features.store import FeatureStore, StoreError, ledger, remote_store, verify
from pipeline.files import remote
from pipeline.manifest import Manifest, build

ENGINE = "features.light.grid={engine: grid, network: test_efficientnet, weights: untrained, image_size: 64, grid: 2}"
PARAMS = Path(__file__).parents[3] / "params.yaml"


@pytest.fixture(scope="module")
def bucket() -> Iterator[Path]:
    with s3_server.running() as address:
        yield Path(address)


@pytest.fixture
def place(bucket: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of this test's own in the bucket, and a folder of copies."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "tmp").mkdir()
    return bucket / request.node.name


def put(folder: Path, place: Path) -> Path:
    for file in folder.rglob("*"):
        if file.is_file():
            remote.write(place / file.relative_to(folder), file)
    return place


# The features of the fourth shard, as they are sent, kill the process: however fast it is, three shards are there.
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
    assert remote.address(Path("s3://bucket/a/b.tar")) == remote.address("s3://bucket/a/b.tar") == "s3://bucket/a/b.tar"
    for here in ("s3", "photos/s3:/x", "/s3:/x", "c:/x", "file:///x", "http://host/x"):
        assert remote.address(Path(here)) is None


def test_tars_killed_and_resumed_equal_files(place: Path, scenes: Manifest, commands: Commands, tmp_path: Path
                                             ) -> None:
    """Tars and the store are in S3; the process is killed in the middle; what it had written stays."""
    tars = put(packed.tars(scenes, tmp_path / "tars"), place / "tars")
    made = build("sample", tars, tars)
    made.save(place / "sample.parquet")
    commands("pipeline", "copy", remote.address(place / "sample.parquet"), tmp_path / "data" / "sample.parquet")
    store, run = place / "grid.zarr", (
        "pipeline", "extract", "--feature", "grid", "--dataset", "sample", "--out", remote.address(place / "grid.zarr"),
        "-S", ENGINE, "-S", "extract.batch_size=1", "-S", "extract.shard_images=2", "--params", PARAMS, "--root",
        tmp_path)
    commands(*run, BEFORE=KILLED, code=-signal.SIGKILL)
    done = [name for name in remote.listed(store) if name.startswith("ledger/")]
    assert len(done) == 3
    second = commands(*run)
    again = [name for name in remote.listed(store) if name.startswith("ledger/")]
    assert len(again) == 12
    assert f"{len(scenes.images) - 6} images" in second.stdout  # the finished shards were not extracted again
    assert "nothing to do" in commands(*run).stdout
    assert remote_store.download(store, tmp_path / "grid.zarr", print, print) == 12
    assert [fault for _, found in verify.verify(tmp_path / "grid.zarr") for fault in found] == []

    files = extraction.ExtractionJob(scenes, scenes.images_folder, tmp_path / "files.zarr", extraction.EngineSpec(
        "grid", {"network": "test_efficientnet", "weights": "untrained", "image_size": 64, "grid": 2},
        Runtime(backend="auto", products="auto")), 1, 2)
    extraction.extract(files)
    one, two = FeatureStore(tmp_path / "grid.zarr").require(made), FeatureStore(files.store).require(scenes)
    images = np.arange(len(scenes.images))
    assert np.array_equal(one.read(images)[0], two.read(images)[0])
    assert one.content(images) == two.content(images)


def test_plain_images_in_s3_and_a_manifest_that_grows(place: Path, scenes: Manifest, job: extraction.ExtractionJob,
                                                      tmp_path: Path) -> None:
    images = put(scenes.images_folder, place / "images")
    there = replace(scenes, images_folder=images)
    there.save(place / "data" / "sample.parquet")
    loaded = Manifest.load(place / "data" / "sample.parquet")
    assert (loaded.images_folder, loaded.digest) == (images, scenes.digest)
    ids = scenes.images["image_id"].to_numpy()
    less = replace(loaded, table=loaded.table[loaded.table["image_id"].isin(ids[3:])].reset_index(drop=True))
    working = tmp_path / "working.zarr"
    begun = replace(job, manifest=less, images_folder=images, store=working, uploaded_to=place / "grid.zarr")
    assert extraction.extract(begun).extracted == len(ids) - 3
    assert extraction.extract(replace(begun, manifest=loaded)).extracted == 3
    shutil.rmtree(working)
    assert extraction.extract(replace(begun, manifest=loaded)).extracted == 0
    remote_store.download(place / "grid.zarr", tmp_path / "copy.zarr", print, print)
    extraction.extract(job)
    one, two = FeatureStore(tmp_path / "copy.zarr").require(loaded), FeatureStore(job.store).require(scenes)
    np.testing.assert_allclose(one.read(np.arange(len(ids)))[0], two.read(np.arange(len(ids)))[0], atol=2e-3)


def test_a_store_that_was_made_otherwise_is_left_alone(place: Path, job: extraction.ExtractionJob, tmp_path: Path
                                                       ) -> None:
    there = replace(job, uploaded_to=place / "grid.zarr", if_changed="redo")
    extraction.extract(there)
    before = remote.listed(place / "grid.zarr")
    with pytest.raises(StoreError, match="made with other settings"):
        extraction.extract(replace(there, dtype="float32"))
    assert remote.listed(place / "grid.zarr") == before


def test_copies_up_and_down_are_the_same_bytes_and_go_on(place: Path, job: extraction.ExtractionJob, tmp_path: Path
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


def test_another_store_is_not_overwritten_by_a_copy(place: Path, job: extraction.ExtractionJob, tmp_path: Path) -> None:
    extraction.extract(job)
    (tmp_path / "other.json").write_text("{}")
    remote.write(place / "s.zarr" / "zarr.json", tmp_path / "other.json")
    with pytest.raises(StoreError, match="another store is there"):
        remote_store.upload(job.store, place / "s.zarr", print, print)
    assert list(remote.listed(place / "s.zarr")) == ["zarr.json"]


def test_a_copy_that_ended_within_a_file_goes_on(place: Path, job: extraction.ExtractionJob, tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    extraction.extract(job)
    remote_store.upload(job.store, place / "s.zarr", print, print)
    connect = remote.system

    def ends_within(path: Path) -> tuple[object, str]:
        files, name = connect(path)

        def get(there: list[str], here: list[str]) -> None:
            for source, target in zip(there, here, strict=True):
                Path(target).write_bytes(files.cat_file(source)[:5 if "features/c" in source else None])
            if any("features/c" in source for source in there):
                raise OSError("the connection is lost")
        return SimpleNamespace(get=get, find=files.find, cat_file=files.cat_file), name
    with monkeypatch.context() as broken:
        broken.setattr(remote, "system", ends_within)
        with pytest.raises(OSError, match="the connection is lost"):
            remote_store.download(place / "s.zarr", tmp_path / "back.zarr", print, print)
    remote_store.download(place / "s.zarr", tmp_path / "back.zarr", print, print)
    found = tree(tmp_path / "back.zarr")
    assert {name: found.get(name) for name in tree(job.store)} == tree(job.store)


def test_keys_that_lead_out_of_the_folder_are_refused(place: Path, job: extraction.ExtractionJob, tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    extraction.extract(job)
    remote_store.upload(job.store, place / "s.zarr", print, print)
    listed = remote.listed
    monkeypatch.setattr(remote, "listed", lambda folder: listed(folder) | {"../outside": 4})
    for bring in (lambda: remote_store.download(place / "s.zarr", tmp_path / "back.zarr", print, print),
                  lambda: remote_store.take_up(place / "s.zarr", tmp_path / "working.zarr")):
        with pytest.raises(StoreError, match=r"'\.\./outside': .*leads out"):
            bring()


def test_nothing_there_is_one_line(place: Path, commands: Commands, tmp_path: Path) -> None:
    for source in ("s3://no-such-bucket/x.zarr", remote.address(place / "x.zarr"), "s3://no-such-bucket/x.parquet"):
        said = commands("pipeline", "copy", source, tmp_path / "x.zarr", code=None)
        assert said.returncode in (1, 2)
        assert said.stderr.count("\n") == 1, said.stderr

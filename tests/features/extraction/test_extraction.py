"""Extraction: complete, repeatable, resumable at any moment, and clear about images that cannot be
decoded.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Generator, Iterable
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from folders import tree
from spoiling import scenes_in
from waiting import LONGEST

from pipeline.foundation.compute.tasks import InProcess
from pipeline.foundation.files import blake, images
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features import extraction
from pipeline.make.features.extraction import worker
from pipeline.make.features.store import FeatureStore, StoreError, ledger, verify

pytestmark = pytest.mark.slow


@pytest.mark.specification
def test_every_image_once_in_the_manifests_order(job: extraction.ExtractionJob) -> None:
    done: list[int] = []
    outcome = extraction.extract(job, on_start=done.append, on_images=done.append)
    assert (outcome.extracted, outcome.failed) == (24, {})
    assert done[0] == 24
    assert sum(done[1:]) == 24
    store = FeatureStore(job.store).require(job.manifest)
    extractor = worker.load_engine(job.engine)
    picture = images.decode(job.images_folder / job.manifest.images["file"][7])
    alone = extractor.extract([extractor.prepare(picture)], [picture.size])[0]
    np.testing.assert_allclose(store.read(np.array([7]))[0][0], alone.features, atol=2e-3)
    assert not [fault for _, found in verify.verify(job.store) for fault in found]


def test_again_does_nothing_and_twice_is_the_same(
    job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    extraction.extract(job)
    before = {
        file: os.stat(file).st_mtime_ns
        for file in job.store.rglob("*")
        if file.name != "failures.csv"
    }
    assert extraction.extract(job).extracted == 0
    assert {file: os.stat(file).st_mtime_ns for file in before} == before
    other = replace(job, store=tmp_path / "other.zarr", batch_size=4)
    extraction.extract(other)
    assert tree(other.store) == tree(job.store)


class Cut(Exception):
    pass


@pytest.mark.specification
def test_cut_between_shards_and_resumed(job: extraction.ExtractionJob, tmp_path: Path) -> None:
    whole = replace(job, store=tmp_path / "whole.zarr")
    extraction.extract(whole)

    class CutShort(InProcess):
        def each(
            self, function: Any, tasks: Iterable[Any], *others: Any
        ) -> Generator[Any, None, None]:
            yield from super().each(function, list(tasks)[2:4], *others)
            raise Cut

    with pytest.raises(Cut):
        extraction.extract(job, CutShort())
    with pytest.raises(StoreError, match="3 of 5 shards"):
        FeatureStore(job.store)
    assert extraction.extract(job).extracted == 14
    assert tree(job.store) == tree(whole.store)


def moments_of(job: extraction.ExtractionJob, killed_at: int | None = None) -> list[str]:
    """Extract in a child of this process: the files before which it could have been killed; none if
    it was.

    A moment is one before a file gets or loses its name: between two of them a store does not
    change.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        moments: list[str] = []

        def pass_by(event: str, arguments: tuple[Any, ...]) -> None:
            if event in ("os.rename", "os.link", "os.remove", "os.rmdir"):
                if len(moments) == killed_at:
                    os.kill(os.getpid(), signal.SIGKILL)
                moments.append(os.fspath(arguments[0]))

        try:
            sys.addaudithook(pass_by)
            extraction.extract(job)
            os.write(writing, json.dumps(moments).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as moments_of_child:
        lasted = moments_of_child.read()
    _, status = os.waitpid(child, 0)
    assert lasted or os.WIFSIGNALED(status)
    passed: list[str] = json.loads(lasted or "[]")
    return passed


def killed_at_every_write(job: extraction.ExtractionJob, folder: Path) -> None:
    """In a process of its own, which has loaded the network: every run is a child of it."""
    torch.set_num_threads(1)
    extraction.extract(replace(job, store=folder / "whole.zarr"))
    gc.freeze()  # no child copies what is there
    whole = moments_of(replace(job, store=folder / "counted.zarr"))
    of_a_shard = [at for at, file in enumerate(whole) if "/c/1" in file or "/ledger/000001" in file]
    created = whole.index(str(folder / "counted.zarr.creating"))
    for at in (created, *of_a_shard):
        cut = replace(job, store=folder / f"cut-{at}.zarr")
        assert not moments_of(cut, at)
        if at in (created, of_a_shard[-1]):
            assert not moments_of(cut, 2)  # and killed again
        assert moments_of(cut)


def test_killed_at_every_write_of_a_shard_and_resumed_it_is_bit_identical(
    forkserver: str, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    table = job.manifest.table
    four = table[table["image_id"].isin(job.manifest.images["image_id"][:4])]
    of_four = Manifest(four, "sample", job.images_folder)
    trials = get_context(forkserver).Process(
        target=killed_at_every_write,
        args=(replace(job, manifest=of_four, batch_size=1, shard_images=2), tmp_path),
    )
    trials.start()
    trials.join(2 * LONGEST)
    assert trials.exitcode == 0
    stores = {store.name: tree(store) for store in tmp_path.glob("*.zarr")}
    assert [name for name, files in stores.items() if files != stores["whole.zarr"]] == []
    assert (
        len(stores) == 2 + 1 + 7
    )  # the store's creation; the shard's old ledger entry, five arrays, and its entry


def test_a_bad_image_ends_the_run_in_one_line(spoiled: extraction.ExtractionJob) -> None:
    with pytest.raises(InputError, match=r"\.jpg: not an image.*--on-error skip") as caught:
        extraction.extract(spoiled)
    assert "\n" not in str(caught.value)


@pytest.mark.specification
def test_bad_images_are_left_out_and_named(spoiled: extraction.ExtractionJob) -> None:
    outcome = extraction.extract(replace(spoiled, on_error="skip"))
    assert {row: reason.split()[0] for row, reason in outcome.failed.items()} == {
        3: "not",
        9: "the",
    }
    assert outcome.extracted == len(spoiled.manifest.images) - 2
    store = FeatureStore(spoiled.store)
    assert np.flatnonzero(~store.done).tolist() == [3, 9]
    lines = (spoiled.store / "failures.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "row,file,reason"
    assert lines[1] == f"3,{spoiled.manifest.images['file'][3]},{outcome.failed[3]}"
    with pytest.raises(ValueError, match="failed in extraction"):
        store.read(np.array([3]))
    assert not [fault for _, found in verify.verify(spoiled.store) for fault in found]


def test_a_store_stays_until_its_successor_is_whole(
    job: extraction.ExtractionJob, spoiled: extraction.ExtractionJob
) -> None:
    extraction.extract(job)
    before = tree(job.store)
    with pytest.raises(InputError, match="not an image"):
        extraction.extract(replace(spoiled, store=job.store))
    with pytest.raises(StoreError, match="2 images changed"):
        FeatureStore(job.store).require(spoiled.manifest)
    assert tree(job.store) == before


def test_failed_images_are_tried_again_when_asked(
    spoiled: extraction.ExtractionJob, corpus: Path
) -> None:
    skipping = replace(spoiled, on_error="skip")
    extraction.extract(skipping)
    assert extraction.extract(skipping).extracted == 0
    with pytest.raises(InputError, match="not an image"):
        extraction.extract(replace(spoiled, retry_failed=True))
    assert FeatureStore(spoiled.store).require(spoiled.manifest)  # what was there is there
    again = replace(skipping, retry_failed=True)
    outcome = extraction.extract(again)
    assert (outcome.extracted, outcome.tried) == (0, 2)
    mended = scenes_in(spoiled.images_folder, corpus, mend=[3])
    outcome = extraction.extract(replace(again, manifest=mended))
    assert (outcome.extracted, list(outcome.failed)) == (1, [9])
    assert FeatureStore(spoiled.store).require(mended).done[3]
    with pytest.raises(InputError, match=r"1 image failed in an earlier run.*--retry-failed"):
        extraction.extract(replace(spoiled, manifest=mended))


def test_changed_images_are_done_again_alone(
    job: extraction.ExtractionJob, spoiled: extraction.ExtractionJob, corpus: Path
) -> None:
    other = replace(spoiled, manifest=scenes_in(spoiled.images_folder, corpus, mend=[3, 9]))
    extraction.extract(other)
    before = FeatureStore(other.store).identity
    (other.images_folder / other.manifest.images["file"][8]).write_bytes(
        (other.images_folder / other.manifest.images["file"][7]).read_bytes()
    )
    with pytest.raises(InputError, match="the manifest says"):
        extraction.extract(replace(other, store=other.store.with_name("new.zarr")))
    changed = replace(other, manifest=scenes_in(other.images_folder, corpus))
    assert extraction.extract(changed).extracted == 1
    store = FeatureStore(changed.store).require(changed.manifest)
    same, alone = (store.read(np.array([row]))[0] for row in (7, 8))
    np.testing.assert_allclose(
        same, alone, atol=2e-3
    )  # a network may round otherwise in another batch
    assert store.identity == before  # the files' sizes are the manifest's to tell


def test_the_bytes_of_every_photograph_are_recorded(spoiled: extraction.ExtractionJob) -> None:
    job = replace(spoiled, on_error="skip")
    failed = extraction.extract(job).failed
    entries = ledger.entries(job.store, FeatureStore(job.store).layout)
    found = {row: checksum for entry in entries for row, checksum in entry.sources.items()}
    files = dict(enumerate(job.images_folder / file for file in job.manifest.images["file"]))
    assert found == {row: blake.of_file(file) for row, file in files.items() if row not in failed}


def test_threads_change_no_byte(job: extraction.ExtractionJob, tmp_path: Path) -> None:
    job = replace(job, shard_images=5)
    extraction.extract(job)
    many = replace(
        job,
        store=tmp_path / "many.zarr",
        threads=extraction.Threads(decoders=5, writers=3, ahead=4),
    )
    assert extraction.extract(many).extracted == len(job.manifest.images)
    assert tree(many.store) == tree(job.store)

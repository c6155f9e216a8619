"""An estimate: what is counted is exact, what is probed is measured, and nothing is written."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from folders import tree

from pipeline.foundation.manifest import with_checksums
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features import extraction, extractors
from pipeline.make.features.extraction import worker
from stages import extract as extract_stage

pytestmark = pytest.mark.slow


def size_on_disk(store: Path) -> int:
    """Of all shard files; not of what describes them."""
    return sum(
        file.stat().st_size
        for file in store.rglob("*")
        if file.is_file() and "c" in file.relative_to(store).parts
    )


def test_counts_are_exact_and_nothing_is_written(job: extraction.ExtractionJob) -> None:
    job = replace(job, shard_images=6)
    estimate = extraction.estimate(job)
    assert not list(job.store.parent.iterdir())
    assert (estimate.total, estimate.images, estimate.shards, estimate.changed) == (24, 24, 4, "")
    assert estimate.probed == 20  # all but a first batch of 4
    assert estimate.seconds
    extraction.extract(job)
    ids = (job.store / "ids" / "c" / "0").stat().st_size
    assert estimate.size == pytest.approx(size_on_disk(job.store) - ids, rel=0.01)


def test_what_is_there_is_not_counted_again(job: extraction.ExtractionJob) -> None:
    extraction.extract(job)
    before = tree(job.store)
    assert extraction.estimate(job).images == 0
    (job.store / "ledger" / "000001.json").unlink()
    assert (extraction.estimate(job).images, extraction.estimate(job).shards) == (5, 1)
    other = replace(job, dtype="float32")
    assert extraction.estimate(other).changed == "row.dtype was float16, is float32"
    assert extraction.estimate(replace(other, if_changed="redo")).images == 24
    assert tree(job.store) | {"ledger/000001.json": b""} == before | {"ledger/000001.json": b""}


def test_photographs_are_those_that_the_manifest_knows(
    job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    job = replace(job, manifest=with_checksums(job.manifest, tmp_path / "known"))
    extraction.extract(job)
    other = job.manifest.table.assign(
        photograph=[
            "0f" if image == 7 else checksum
            for image, checksum in job.manifest.table[["image_id", "photograph"]].values
        ]
    )
    replaced = replace(job, manifest=replace(job.manifest, source=other))
    assert extraction.estimate(replaced).images == 1
    assert extraction.estimate(replace(job, images_folder=tmp_path / "elsewhere")).images == 0, (
        "none is looked at"
    )


def test_the_time_is_that_of_decoding_and_of_the_engine(
    job: extraction.ExtractionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock that only these two move: the network is waited for where there is a core for
    decoding beside it, else one after the other. A first batch warms up and does not count.
    """
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(
        sys.modules["pipeline.make.features.extraction.extract"],
        "time",
        SimpleNamespace(perf_counter=lambda: clock.now),
    )
    extractor, decode = worker.load_engine(job.engine), worker.decode
    extract, calls = extractor.extract, []

    def slow(batch: list[object], sizes: list[tuple[int, int]]) -> Sequence[extractors.Computed]:
        clock.now += 2.0 * len(batch) if calls else 1000.0
        calls.append(len(batch))
        return extract(batch, sizes)

    def slow_decode(*arguments: Any) -> Any:
        clock.now += 0.5
        return decode(*arguments)

    monkeypatch.setattr(extractor, "extract", slow)
    monkeypatch.setattr(worker, "decode", slow_decode)
    for cores, seconds in ((2, 2.0), (1, 2.5)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process, cores=cores: range(cores))
        calls.clear()
        assert extraction.estimate(job).seconds == 24 * seconds, cores


def test_images_that_cannot_be_decoded(spoiled: extraction.ExtractionJob, tmp_path: Path) -> None:
    assert extraction.estimate(spoiled).seconds is not None  # two of 24
    shutil.rmtree(spoiled.images_folder)
    with pytest.raises(InputError, match="no such folder"):
        extraction.estimate(spoiled)


def test_workers_without_a_shard_take_no_part(
    job: extraction.ExtractionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """24 images in two shards: of four workers two do nothing."""
    shared = []

    def probe(task: object, workers: int | None) -> tuple[int, float | None]:
        shared.append(workers)
        return 20, 1.0

    monkeypatch.setattr(sys.modules["pipeline.make.features.extraction.extract"], "probe", probe)
    estimate = extraction.estimate(replace(job, shard_images=12), workers=4)
    assert (shared, estimate.shards, estimate.seconds) == ([2], 2, 24.0)
    for workers in (2, 4):
        lines = extract_stage._forecast(job.store, "image", estimate, workers, False)
        assert lines[-1] == (
            "  time        0:00:12 with 2 workers, an estimate; measured now on 20 images: 0.500 s each, "
            "without loading the network"
        )

"""Several devices in one command. CPU processes stand in for GPUs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from folders import tree

from pipeline.foundation.compute import cluster
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features import extraction
from pipeline.make.features.extraction import request, worker

pytestmark = pytest.mark.usefixtures("forkserver")


def own_device() -> list[str]:
    return list(worker._own_device)


def test_lists_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert request.devices("cuda:0, cuda:1") == ["cuda:0", "cuda:1"]
    assert request.devices("cpu,cpu") == ["cpu", "cpu"]
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    assert request.devices("cuda:*") == ["cuda:0", "cuda:1", "cuda:2"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("cuda:*", "no such device here; use cpu"),
        ("cpu:*", "there is one CPU"),
        ("cuda:0,cuda:0", "is listed twice"),
        ("cpu,", "expected devices such as"),
        ("", "expected devices such as"),
        ("cuda:*0", "expected devices such as"),
        ("abc:*", "no such device here; use cpu"),
    ],
)
def test_other_lists_are_refused(asked: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    with pytest.raises(InputError, match=said):
        request.devices(asked)


def test_each_worker_has_its_device_and_the_store_is_the_same(
    job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    job = replace(job, shard_images=5)
    extraction.extract(job)
    two = replace(job, store=tmp_path / "two.zarr")
    other = replace(
        two, engine=replace(two.engine, runtime=replace(two.engine.runtime, device="cuda:0"))
    )
    with cluster.local(
        2, threads=1, on_start=partial(worker.take_device_of, ["cpu", "cpu:0"])
    ) as executor:
        assert sorted(executor.client.run(own_device).values()) == [["cpu"], ["cpu:0"]]
        extraction.extract(other, executor)  # its tasks name another device, which is not here
    assert tree(two.store) == tree(job.store)


def test_a_device_that_is_not_there_is_one_line(job: extraction.ExtractionJob) -> None:
    with (
        cluster.local(1, threads=1, on_start=partial(worker.take_device_of, ["meta"])) as executor,
        pytest.raises(InputError, match="device 'meta' is not available"),
    ):
        extraction.extract(job, executor)

"""Results of tasks that are kept: after an interruption, after a worker died, and of another
request.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.foundation.artefacts.pieces import KeptPieces
from pipeline.foundation.compute import cluster
from pipeline.foundation.compute.tasks import InProcess
from pipeline.foundation.parts.errors import InputError


def squares(task: Any, wanted: Any) -> dict[str, np.ndarray]:
    """The square of a number; the process of the first that asks for 3 dies of it."""
    number, marker = task
    if number == 3 and marker is not None and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"squared": np.array([number * number])}


def values(found: Any) -> list[int]:
    return [int(arrays["squared"][0]) for arrays in found]


@pytest.mark.usefixtures("forkserver")
def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    tasks = [(number, tmp_path / "died") for number in range(8)]
    with cluster.local(2, threads=1) as workers:
        found = values(KeptPieces(tmp_path / "a.zarr", {}).run(squares, tasks, workers))
    assert (tmp_path / "died").exists()
    assert found == [number * number for number in range(8)]


def test_only_what_is_missing_or_damaged_is_done_again(tmp_path: Path) -> None:
    def cut(task: Any, wanted: Any) -> Any:
        if task[0] == 2:
            raise KeyboardInterrupt
        return squares(task, wanted)

    tasks, reported = [(number, None) for number in range(4)], []
    with pytest.raises(KeyboardInterrupt):
        KeptPieces(tmp_path / "a.zarr", {"of": 1}).run(cut, tasks, InProcess())
    (tmp_path / "a.zarr.pieces" / "00001.npz").write_bytes(b"cut short")
    kept = KeptPieces(tmp_path / "a.zarr", {"of": 1})
    assert values(kept.run(squares, tasks, InProcess(), lambda *one: reported.append(one))) == [
        0,
        1,
        4,
        9,
    ]
    assert reported == [(0, True), (1, False), (2, False), (3, False)]
    found = kept.all(4)
    kept.remove()
    with pytest.raises(InputError, match="was removed meanwhile"):
        list(found)


def test_results_of_another_request_are_removed(tmp_path: Path) -> None:
    KeptPieces(tmp_path / "a.zarr", {"of": 1}).run(squares, [(5, None)], InProcess())
    assert KeptPieces(tmp_path / "a.zarr", {"of": 2}).read(0) is None

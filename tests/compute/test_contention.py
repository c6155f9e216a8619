"""Other work beside a timing is seen."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline.foundation.compute import machine
from pipeline.foundation.compute.machine import Instant


def test_others_are_all_but_this_process() -> None:
    assert machine.others(Instant(0.0, 1.0, 10.0), Instant(10.0, 8.0, 32.0)) == pytest.approx(1.5)
    assert machine.others(Instant(0.0, 1.0, None), Instant(10.0, 8.0, None)) is None


def test_cores_that_are_left_over_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert not machine.disturbed(1.9, threads=2)
    assert machine.disturbed(2.3, threads=2)
    assert machine.disturbed(0.5, threads=4)
    assert not machine.disturbed(None, threads=4)


@pytest.mark.parametrize(("working", "cores"), [("another process", 0.5), ("this process", 0.0)])
def test_a_busy_process_is_seen_and_this_one_is_not(
    working: str, cores: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two cores for 10 seconds, in which one process computes for 5. Idle and waiting for disks
    is not busy.
    """
    second = os.sysconf("SC_CLK_TCK")
    user, nice, system, idle, waiting, irq, softirq, steal = (
        second * 100 * place for place in range(1, 9)
    )
    statistics = tmp_path / "stat"
    monkeypatch.setattr(machine, "STATISTICS", statistics)

    def at(later: int) -> Instant:
        times = (
            user + 2 * later,
            nice + later,
            system + later,
            idle + 9 * later,
            waiting + 6 * later,
            irq + later // 2,
            softirq + later // 2,
            steal,
        )
        guest = (user, nice)  # counted in the first two already
        statistics.write_text(
            f"cpu  {' '.join(map(str, times + guest))}\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 99\n"
        )
        return machine.now()

    start, end = at(0), at(second)
    assert start.busy is not None
    assert end.busy is not None
    assert start.busy == 100 * (1 + 2 + 3 + 6 + 7 + 8)
    assert end.busy - start.busy == 5.0
    own = 5.0 if working == "this process" else 0.0
    assert (
        machine.others(replace(start, wall=0.0, own=0.0), replace(end, wall=10.0, own=own)) == cores
    )


def test_now_reads_this_processs_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        machine, "time", SimpleNamespace(perf_counter=lambda: 3.0, process_time=lambda: 2.0)
    )
    assert (machine.now().wall, machine.now().own) == (3.0, 2.0)
    monkeypatch.setattr(machine, "STATISTICS", Path("/proc/nothing"))
    assert machine.now().busy is None

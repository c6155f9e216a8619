"""Other work beside a timing is seen."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from pipeline.compute import contention
from pipeline.compute.contention import Instant


def test_others_are_all_but_this_process() -> None:
    assert contention.others(Instant(0.0, 1.0, 10.0), Instant(10.0, 8.0, 32.0)) == pytest.approx(1.5)
    assert contention.others(Instant(0.0, 1.0, None), Instant(10.0, 8.0, None)) is None


def test_cores_that_are_left_over_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert not contention.disturbed(1.9, threads=2)
    assert contention.disturbed(2.3, threads=2)
    assert contention.disturbed(0.5, threads=4)
    assert not contention.disturbed(None, threads=4)


@pytest.mark.skipif(not contention.STATISTICS.exists(), reason="the system does not count CPU time in /proc")
def test_a_busy_process_is_seen_and_this_one_is_not() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.3)
        start = contention.now()
        time.sleep(0.5)
        used = contention.others(start, contention.now())
    finally:
        busy.kill()
        busy.wait()
    assert used is not None
    assert used > 0.2

"""The benchmark of slopes tells linear work from quadratic, and its steps are done."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import slopes


@pytest.mark.parametrize(("power", "good"), [(1.0, True), (1.1, True), (1.3, False), (2.0, False)])
def test_quadratic_work_is_too_steep(power: float, good: bool, capsys: pytest.CaptureFixture[str]) -> None:
    def measured(images: int, folder: Path) -> slopes.Steps:
        return {"flat": 0.2, "step": images**power}

    assert slopes.main([1000, 10_000], measured) is good
    assert ("too steep" in capsys.readouterr().out) is not good


def test_all_steps_are_done(tmp_path: Path) -> None:
    assert len(slopes.work(2000, tmp_path)) == 9

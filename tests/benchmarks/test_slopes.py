"""The benchmark of slopes tells linear work from quadratic, long steps and much memory, and its
steps are done.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import pandas as pd
import pytest

from benchmarks import slopes
from pipeline.foundation.files import remembered
from pipeline.foundation.manifest import photographs


@pytest.mark.parametrize(("power", "good"), [(1.0, True), (1.1, True), (1.3, False), (2.0, False)])
def test_quadratic_work_is_too_steep(
    power: float, good: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(images: int, folder: Path) -> slopes.Costs:
        return {
            slopes.PLAIN: slopes.Cost(2000, 100),
            "flat": slopes.Cost(0.2, 100),
            "step": slopes.Cost(24 * (images / 10_000) ** power, 100),
        }

    assert slopes.main([1000, 10_000], measured) is good
    assert ("too steep" in capsys.readouterr().out) is not good


@pytest.mark.parametrize(
    ("name", "cost", "plain", "said"),
    [
        ("step", slopes.Cost(59, 1999), 10, ""),
        ("step", slopes.Cost(61, 100), 10, "too long"),
        ("step", slopes.Cost(61, 100), 11, ""),
        ("step", slopes.Cost(19, 100), 1, ""),  # on a slower CPU; too short
        ("step", slopes.Cost(1, 2001), 10, "too much memory"),
        (slopes.DRY_RUN, slopes.Cost(4.9, 100), 10, ""),
        (slopes.DRY_RUN, slopes.Cost(5.1, 100), 10, "too long"),
    ],
)
def test_a_step_may_be_too_dear_at_any_slope(
    name: str, cost: slopes.Cost, plain: float, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Judged by a plain loop on the same machine."""
    measured = {slopes.PLAIN: slopes.Cost(plain, 100), name: cost}
    assert slopes.main([1, 2], lambda images, folder: measured) is not bool(said)
    assert ("too" in capsys.readouterr().out) is bool(said)


@pytest.mark.slow
def test_all_steps_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Photographs count as unchanged, and need not be read again, after less time than on a disk.
    for module in (remembered, photographs, slopes):
        monkeypatch.setattr(module, "SETTLED", 10**7)
    # Training and scoring import it: once, before each has a process of its own.
    import_module("torch._dynamo")
    found = slopes.work(1100, tmp_path)
    assert found.keys() == slopes.STEPS.keys()
    # Each process begins with what this one holds, which in a run of all tests is some 1,900.
    held = getrusage(RUSAGE_SELF).ru_maxrss // 1000
    assert all(100 < cost.megabytes < held + 1400 for cost in found.values())
    # Photographs that were read once are known.
    sizes = [len(str(image)) for image in range(1100)]
    assert pd.read_parquet(tmp_path / "checksums")["size"].tolist() == sizes

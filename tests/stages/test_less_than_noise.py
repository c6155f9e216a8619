"""`pipeline compare` of a system with several runs and one with a single run: which differences are
less than the first one's noise.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

pytestmark = pytest.mark.slow

IMAGES = 40


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, rng: np.random.Generator) -> None:
    """Three runs of a system, a run of the same one by another name, and a worse system."""
    scores = rng.normal(size=(IMAGES, IMAGES)) + 2 * np.eye(IMAGES)
    for name in ("a0", "a1", "a2", "same"):
        np.save(tmp_path / f"{name}.npy", scores + 0.3 * rng.normal(size=scores.shape))
    np.save(tmp_path / "worse.npy", scores - 1.9 * np.eye(IMAGES))


def recall(name: str) -> float:
    scores = np.load(f"{name}.npy")
    return 100 * float(np.mean((scores > np.diag(scores)[:, None]).sum(1) < 1))


def entry(pipeline: Any, *systems: str) -> dict[str, Any]:
    code, out, err = pipeline("compare", *systems, "--captions-per-image", "1", "--json")
    assert code == 0, err
    return json.loads(out)[0]


def test_the_limit_is_students_t_of_the_runs(pipeline: Any) -> None:
    runs = [recall(f"a{number}") for number in range(3)]
    limit = stats.t.ppf(0.975, 2) * np.std(runs, ddof=1) * np.sqrt(1 / 3 + 1)
    for other, is_less in (("same", True), ("worse", False)):
        row = entry(pipeline, "a0.npy,a1.npy,a2.npy", f"{other}.npy")["i2t"]["R@1"]
        assert row["noise"] == {"limit": pytest.approx(limit), "freedom": 2, "less": is_less}
        assert bool(abs(np.mean(runs) - recall(other)) < limit) is is_less


def test_single_runs_have_no_noise_and_seeds_of_both_have_it_in_their_interval(
    pipeline: Any,
) -> None:
    assert entry(pipeline, "a0.npy", "worse.npy")["RSUM"]["noise"] is None
    both = entry(pipeline, "a0.npy,a1.npy", "a2.npy,same.npy")
    assert (both["RSUM"]["noise"], both["over"]) == (None, ["images", "seeds"])
    # Where a third system has a single run, all pairs are tested over images alone.
    assert entry(pipeline, "a0.npy,a1.npy", "a2.npy,same.npy", "worse.npy")["RSUM"]["noise"]


def test_it_is_printed_beside_each_difference(pipeline: Any) -> None:
    def printed(*arguments: str) -> str:
        return pipeline("compare", *arguments, "--captions-per-image", "1")[1]

    near = ("A=a0.npy,a1.npy,a2.npy", "same.npy")
    limit = f"< {entry(pipeline, *near)['RSUM']['noise']['limit']:.1f}"
    text = printed(*near)
    # The label of a row may be on a line of its own, above its numbers.
    of_rsum = text.partition("\n  RSUM")[2].splitlines()[:2]
    assert limit in " ".join(of_rsum)
    unwrapped = " ".join(text.split())
    assert "Noise: less than the noise of A;" in unwrapped
    assert "show a floor" not in unwrapped
    assert all(len(line) <= 80 for line in text.splitlines())
    assert limit.removeprefix("< ") in printed(*near, "--markdown")
    assert "less than the noise of A" in printed(*near, "--latex")
    rows = list(csv.DictReader(io.StringIO(printed(*near, "--csv"))))
    assert f"< {float(rows[-1]['noise']):.1f}" == limit
    assert "Student's t over the runs of A" in " ".join(printed(*near, "--explain").split())
    far = " ".join(printed("A=a0.npy,a1.npy", "worse.npy").split())
    assert "Two runs show a floor of the noise" in far
    three = " ".join(printed("a0.npy,a1.npy,a2.npy", "same.npy", "worse.npy").split())
    assert f"{limit} " in three
    assert "the noise of the systems with several runs" in three

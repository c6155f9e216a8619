"""`pipeline noise`: runs of one system, their spread and how many ranks move."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def runs(tmp_path: Path, rng: np.random.Generator) -> list[np.ndarray]:
    """Scores of 30 images and a caption of each, computed three times; as files run0.npy, …"""
    scores = rng.normal(size=(30, 30)) + 2 * np.eye(30)
    computed = []
    for number in range(3):
        run = scores + 0.3 * rng.normal(size=scores.shape)
        np.save(tmp_path / f"run{number}.npy", run)
        computed.append(run)
    return computed


def test_what_is_printed_is_what_numpy_says(pipeline: Any, runs: list[np.ndarray]) -> None:
    code, out, err = pipeline("noise", "run*.npy", "--captions-per-image", "1", "--json")
    assert code == 0, err
    (pool,) = json.loads(out)
    ranks = np.array([1 + (run > np.diag(run)[:, None]).sum(1) for run in runs])
    recalls = 100 * (ranks <= 1).mean(1)
    assert (pool["runs"], pool["freedom"]) == (["run0", "run1", "run2"], 2)
    assert pool["i2t"]["R@1"]["mean"] == pytest.approx(recalls.mean())
    assert pool["i2t"]["R@1"]["spread"] == pytest.approx(recalls.std(ddof=1))
    assert pool["i2t"]["MeanR"]["spread"] == pytest.approx(ranks.mean(1).std(ddof=1))
    in_any = 100 * np.mean((ranks != ranks[0]).any(0))
    assert pool["i2t"]["moved"]["in_any"] == pytest.approx(in_any)
    assert in_any > 0


@pytest.mark.usefixtures("runs")
def test_it_is_printed_as_text_markdown_and_latex(pipeline: Any) -> None:
    two = ("noise", "run0.npy,run1.npy", "--captions-per-image", "1")
    code, out, _ = pipeline(*two)
    assert (code, out.splitlines()[0]) == (
        0,
        "2 runs of one system, 1 degree of freedom: run0, run1",
    )
    assert "Two runs show a floor, they do not measure one" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "show a floor" not in pipeline("noise", "run*.npy", "--captions-per-image", "1")[1]
    assert "| image → caption, R@1 |" in pipeline(*two, "--markdown")[1]
    assert r"\label{tab:noise-2}" in pipeline(*two, "--latex")[1]


def test_the_noise_of_a_run_of_anything_is_by_query(pipeline: Any, tmp_path: Path) -> None:
    queries = range(20)
    (tmp_path / "q.txt").write_text("".join(f"q{each} 0 d{each} 1\n" for each in queries))
    for run in range(2):
        rows = [f"q{each} Q0 d{each // (run + 1)} 1 1 a\n" for each in queries]
        (tmp_path / f"run{run}.trec").write_text("".join(rows))
    code, out, err = pipeline("noise", "run0.trec", "run1.trec", "--qrels", "q.txt")
    assert code == 0, err
    assert " by query" in out
    assert "image" not in out


@pytest.mark.usefixtures("runs")
def test_equal_runs_are_said_to_have_no_noise(pipeline: Any) -> None:
    Path("again.npy").write_bytes(Path("run0.npy").read_bytes())
    _, out, _ = pipeline("noise", "run0.npy", "again.npy", "--captions-per-image", "1")
    assert "All runs have the same ranks" in out
    assert "show a floor" not in out


@pytest.mark.usefixtures("runs")
def test_what_is_no_two_runs_of_one_system_is_refused(refused: Callable[..., str]) -> None:
    np.save("wide.npy", np.eye(30, 60))
    cases = {
        ("run0.npy",): "run0.npy: is one run",
        ("run0.npy", "run0.npy"): "is named twice",
        ("run0.npy", "run9.npy"): "run9.npy: no such file",
        ("run0.npy", "wide.npy", "--captions-per-image", "1"): "wide.npy",
    }
    for arguments, why in cases.items():
        assert why in refused("noise", *arguments)

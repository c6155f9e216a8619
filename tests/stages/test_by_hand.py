"""Systems that commands made by name, beside a run's own: measured, in tables and the report, left
out when older.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scored import score

pytestmark = pytest.mark.slow

R, G, RG = (f"vse2ad-{visual}-bigru-s0" for visual in ("region", "grid", "RG"))
MINE = ("ensemble", "mine", "--member", R, "--member", G, "--fusion", "zscore")
RUN = ("-S", "run.features=[region, grid]", "-S", "run.ablations=[]", "-S", "run.ensembles=[RG]")


def measured() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("results/metrics.json").read_text())
    return found


def test_they_reach_the_results_the_tables_and_the_report(
    pipeline: Any, invented: Path, tmp_path: Path
) -> None:
    shutil.copytree(invented, tmp_path, dirs_exist_ok=True)
    rerank = ("rerank", "--retriever", R, "--with", RG, "--k", "2")
    step = (
        "-S",
        "run.rerank=[{name: rr, retriever: region, with: RG, k: 2}]",
    )  # the same once more, by the run
    folds = (*rerank, "--folds", "2", "--name", "folds")
    for command in (
        MINE,
        rerank,
        folds,
        ("rerank", *step),
        ("rescore", R, "--by", "csls"),
        ("evaluate", *step),
        ("tables", *step),
        ("report", *step),
    ):
        code, _, err = pipeline(*command)
        assert code == 0, (command, err)
    assert [name for name in measured() if name.endswith(("mine", "folds", "rerank", "csls"))] == [
        "folds",
        "mine",
        f"{R}+csls",
        f"{R}+rerank",
    ]
    assert pipeline("trace", "folds", "-v", "--embed", "0")[1].count("measured again, 2fold") == 1
    table, page = (
        Path("results", file).read_text() for file in ("tables/vse2ad_table1.md", "report.html")
    )
    for said in ("ensemble mine (zscore)", "csls (bank test)"):
        assert said in table
        assert page.count(said) >= 2  # in the results and among the queries


def test_those_of_other_runs_are_no_part_and_older_ones_are_left_out(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    for feature, seed in (("region", 0), ("grid", 0), ("grid", 1)):
        score(feature, seed=seed)
    for command in (
        ("ensemble", *RUN),
        MINE,
        ("rescore", "vse2ad-grid-bigru-s1", "--by", "csls"),
        ("evaluate", *RUN),
    ):
        code, _, err = pipeline(*command)
        assert code == 0, err
    assert list(measured()) == [R, G, RG, "mine"]
    score("grid", content=b"trained again")
    assert pipeline("ensemble", *RUN)[0] == 0
    code, _, err = pipeline("evaluate", *RUN)
    assert code == 0
    assert (
        "warning: left out: similarities/sample/mine.zarr: is an ensemble of an older vse2ad-grid-bigru-s0"
        in err
    )
    assert f"run `pipeline {' '.join(MINE)} --dataset sample` again" in err
    assert list(measured()) == [R, G, RG]
    assert pipeline(*MINE)[0] == pipeline("evaluate", *RUN)[0] == 0
    assert list(measured()) == [R, G, RG, "mine"]
    score("region", manifest="n" * 64)
    assert "its manifest is" in refused("evaluate", *RUN)  # the run's own are never left out

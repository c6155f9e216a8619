"""Systems whose names look like something else count as what their records say, wherever they are
shown.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import saved
from command_line import PARAMS

from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores.system import System
from pipeline.run.provenance import results
from pipeline.run.report.measured import read_metrics
from stages import cli

pytestmark = pytest.mark.slow

# Name, as of a folder of `train --out` -> the recipe, feature and seed of the head.
HEADS = {
    "my-RG-x-s1": ("mine", "grid", 0),
    "x@fr": ("mine", "grid", 1),
    "vse2ad-RG-bigru-s7+csls": ("mine", "grid", 2),
    "vse_infty-region-bigru-s1": ("mine", "region", 3),
    "R": ("mine", "region", 4),
    "RGP-s0": ("mine", "region", 5),
    "tried-s0": ("tried", "patch", 0),
    "tried-s1": ("tried", "grid", 0),
    "a+b": ("tried", "region", 0),
    "bête noire, 図 -s1": ("vse2ad", "region", 8),
}
FUSED, RERANKED, RESCORED = "vse2ad-G-bigru-s1", "VSE-RG-bigru-s3", "R+csls"
TITLES = {
    "my-RG-x-s1": "mine, Grid, BiGRU, seed 0",
    "R": "mine, Region, BiGRU, seed 4",
    "tried-s0": "tried, Patch, BiGRU, seed 0",
    "bête noire, 図 -s1": "VSE+2AD, Region, BiGRU, seed 8",
    RESCORED: "mine, Region, BiGRU, seed 4, csls (bank test)",
    FUSED: f"several recipes, Region+Grid, BiGRU, seed 0, ensemble {FUSED} (rank)",
    RERANKED: "tried, Region, BiGRU, seed 0, rerank (with mine-grid-bigru, k 2)",
}


def path(name: str) -> Path:
    return Paths(Path()).similarity("sample", name, "test")


@pytest.fixture(scope="module")
def labelled(invented: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The invented run with these systems: its folder, and what `evaluate` prints of them, without
    line breaks.
    """
    root = tmp_path_factory.mktemp("labelled") / "run"
    shutil.copytree(invented, root)
    with contextlib.chdir(root):
        return root, _add_the_systems()


def _add_the_systems() -> str:
    """What `evaluate` prints when they are in the working directory."""
    for name, (recipe, feature, seed) in HEADS.items():
        store = System.open(path(f"vse2ad-{feature}-bigru-s0"))
        member = store.made_from.members[0].changed(head=name)
        made = store.made_from.changed(recipe=recipe, seed=seed, member=member)
        saved.save(
            path(name),
            [store.scores],
            store.image_ids,
            store.caption_ids,
            store.caption_image,
            made,
        )
    for command in (
        ("ensemble", FUSED, "--member", "my-RG-x-s1", "--member", "a+b", "--fusion", "rank"),
        ("rerank", "--retriever", "a+b", "--with", "x@fr", "--k", "2", "--name", RERANKED),
        ("rescore", "R", "--by", "csls"),
    ):
        cli.cli.main([*command, "--params", PARAMS], standalone_mode=False)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        cli.cli.main(["evaluate", "--params", PARAMS], standalone_mode=False)
    assert "warning: left out" not in err.getvalue()
    return " ".join(out.getvalue().split())


@pytest.fixture
def summary(pipeline: Callable[..., Any], labelled: tuple[Path, str], tmp_path: Path) -> str:
    """A copy of that run, the working directory of the test: what `evaluate` printed of it."""
    root, printed = labelled
    shutil.copytree(root, tmp_path, dirs_exist_ok=True)
    return printed


def test_every_system_is_what_its_record_says(
    summary: str, pipeline: Callable[..., Any], tmp_path: Path
) -> None:
    metrics = results.read(tmp_path / "results" / "metrics.json")
    assert {*HEADS, FUSED, RERANKED, RESCORED} <= metrics.keys()
    found = {name: system.origin for system in read_metrics(metrics) for name in system.systems}
    assert {name: (found[name].recipe, found[name].visual) for name in HEADS} == {
        name: (recipe, feature[0].upper()) for name, (recipe, feature, _) in HEADS.items()
    }
    assert {system.systems for system in read_metrics(metrics) if len(system.systems) > 1} == {
        ("my-RG-x-s1", "x@fr", "vse2ad-RG-bigru-s7+csls"),
        ("vse_infty-region-bigru-s1", "R", "RGP-s0"),
        ("vse2ad-R-bigru-s0", "bête noire, 図 -s1"),
    }
    # The summary of the same numbers joins the same seeds.
    assert summary.count(" ± ") == 3 * 7
    verbose = " ".join(pipeline("evaluate", "-v")[1].split())
    for series, seeds in {
        "mine-grid-bigru": 3,
        "mine-region-bigru": 3,
        "vse2ad-region-bigru": 2,
    }.items():
        assert re.search(rf" {series} \S+ ± ", summary)
        assert f"{series}, protocol all, mean ± standard deviation of {seeds} seeds" in verbose
    for command in (
        ("tables",),
        ("report", "-S", "report.queries=2"),
    ):
        code, _, err = pipeline(*command)
        assert code == 0, err
    page = (tmp_path / "results" / "report.html").read_text(encoding="utf-8").replace("<wbr>", "")
    assert [name for name, title in TITLES.items() if title not in page] == []


def test_seeds_are_found_by_their_records(
    summary: str, pipeline: Callable[..., Any], refused: Callable[..., str]
) -> None:
    assert summary
    code, out, err = pipeline("compare", "tried", "bête noire, 図 -s1", "--json")
    assert code == 0, err
    assert json.loads(out)[0]["systems"] == {"a": ["tried-s0"], "b": ["bête noire, 図 -s1"]}
    assert "neither a file nor a system of sample" in refused(
        "compare", "RGP", "tried"
    )  # RGP-s0 is of seed 5

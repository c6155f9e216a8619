"""The whole road: `dvc repro` on a tiny sample, twice, and once more with a parameter touched."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TINY = {"network": "test_efficientnet", "weights": "untrained", "image_size": 64}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project as a user has it, with the settings of a sample that takes seconds."""
    copy = tmp_path_factory.mktemp("project")
    for name in ("dvc.yaml", ".dvcignore", "pipeline", "stages", "manifests"):
        source = ROOT / name
        shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__")) if source.is_dir() \
            else shutil.copy(source, copy / name)
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    settings["sample"] = {"images": 24, "size": 64, "seed": 0}
    settings["features"] = {
        "region": {"engine": "pyramid", **TINY, "image_size": 128}, "grid": {"engine": "grid", **TINY, "grid": 2},
        "patch": {"engine": "patch", "network": "test_vit", "weights": "untrained", "image_size": 160, "cls": True}}
    settings["throughput"].update(batch_size=4, candidates=50, pools=[20, 200], pairs=1, repeats=1)
    settings["training"]["sample"].update(dimension=16, word_dimension=8, batch_size=16, epochs=2)
    (copy / "params.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    dvc(copy, "init", "--no-scm")
    dvc(copy, "repro")
    return copy


def dvc(project: Path, *arguments: str) -> str:
    """Run DVC with this interpreter's commands on the path; returns what it printed."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, "-m", "dvc", *arguments], cwd=project, env=environment, text=True,
                         capture_output=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    return ran.stdout + ran.stderr


def stages_run(printed: str) -> set[str]:
    return set(re.findall(r"Running stage '([^']+)'", printed))


def test_results_are_there_and_traceable(project: Path) -> None:
    results = json.loads((project / "results" / "metrics.json").read_text(encoding="utf-8"))
    assert {"vse2ad-region-bigru-s0", "vse2ad-R-bigru-s0", "vse2ad-RG-bigru-s0", "vse2ad-RGP-bigru-s0"} <= set(results)
    made_from = results["vse2ad-RGP-bigru-s0"]["made_from"]
    assert (made_from["dataset"], made_from["split"], made_from["seed"]) == ("sample", "test", 0)
    assert made_from["untrained"] == ["region", "grid", "patch"]
    assert [len(member["checkpoint"]) for member in made_from["members"]] == [64] * 3
    assert 0 <= results["vse2ad-RGP-bigru-s0"]["all"]["rsum"] <= 600
    single, ensemble = (results[f"vse2ad-{name}-bigru-s0"]["all"] for name in ("region", "R"))
    assert single == ensemble


def test_tables_hold_published_and_measured_rows_apart(project: Path) -> None:
    text = (project / "results" / "tables" / "vse2ad_table1.tex").read_text(encoding="utf-8")
    rsum = json.loads((project / "results" / "metrics.json").read_text())["vse2ad-RGP-bigru-s0"]["all"]["rsum"]
    panel = text.index("Measured here on the sample of rendered scenes")
    assert 0 < text.index("527.8") < panel  # VSE+2AD, BiGRU, R on COCO 1K as published
    assert "527.8" not in text[panel:]
    assert f"{rsum:.1f}" in text[panel:]
    assert r"\toprule" in text
    assert (project / "results" / "tables" / "vse2ad_table1.md").stat().st_size > 1000


def test_a_second_run_runs_nothing(project: Path) -> None:
    assert stages_run(dvc(project, "repro")) == set()


def test_metrics_and_plots_show(project: Path) -> None:
    shown = dvc(project, "metrics", "show", "--json")
    assert "vse2ad-RGP-bigru-s0" in shown
    dvc(project, "plots", "show")
    assert (project / "dvc_plots" / "index.html").stat().st_size > 1000


def test_one_parameter_reruns_only_what_depends_on_it(project: Path) -> None:
    settings = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))
    settings["features"]["grid"]["grid"] = 1
    (project / "params.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    ran = stages_run(dvc(project, "repro"))
    assert ran == {"extract@grid", "train@vse2ad-grid-bigru-0", "score@vse2ad-grid-bigru-0",
                   "ensemble-RG@vse2ad-bigru-0", "ensemble-RGP@vse2ad-bigru-0", "evaluate", "tables", "figures",
                   "report"}
    assert stages_run(dvc(project, "repro")) == set()

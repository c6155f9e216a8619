"""The whole road: `dvc repro` on a tiny sample, twice, and once more with a parameter touched."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from dulwich import porcelain

ROOT = Path(__file__).parents[2]
TINY = {"network": "test_efficientnet", "weights": "untrained", "image_size": 64}
ABLATIONS = ["vse2ad-noadopt", "vse_infty"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project as a user has it, with the settings of a sample that takes seconds."""
    copy = tmp_path_factory.mktemp("project")
    for name in ("dvc.yaml", ".dvcignore", ".gitignore", "pipeline", "stages", "manifests"):
        source = ROOT / name
        shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__")) if source.is_dir() \
            else shutil.copy(source, copy / name)
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    settings["sample"] = {"images": 24, "size": 64, "seed": 0}
    settings["features"]["light"] = {
        "region": {"engine": "pyramid", **TINY, "image_size": 128}, "grid": {"engine": "grid", **TINY, "grid": 2},
        "patch": {"engine": "patch", "network": "test_vit", "weights": "untrained", "image_size": 160, "cls": True}}
    settings["throughput"].update(batch_size=4, candidates=50, pools=[20, 200], pairs=1, repeats=1, seconds=0.0)
    settings["run"]["ablations"]["recipes"] = ABLATIONS
    settings["training"]["sample"].update(dimension=16, word_dimension=8, batch_size=16, epochs=2)
    (copy / "params.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    porcelain.init(copy)  # git itself is not needed
    dvc(copy, "init")
    dvc(copy, "repro")
    porcelain.add(copy, [str(copy / name) for name in ("params.yaml", "dvc.yaml", "dvc.lock", ".gitignore")])
    porcelain.commit(copy, message=b"A run", author=b"A <a@example.org>", committer=b"A <a@example.org>")
    return copy


def dvc(project: Path, *arguments: str) -> str:
    """Run DVC with this interpreter's commands on the path; returns what it printed."""
    ran = _run(project, *arguments)
    return ran.stdout + ran.stderr


def dvc_json(project: Path, *arguments: str) -> Any:
    """What a DVC command prints with --json."""
    return json.loads(_run(project, *arguments, "--json").stdout)


def _run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, "-m", "dvc", *arguments], cwd=project, env=environment, text=True,
                         capture_output=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    return ran


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


def test_plots_and_the_page_show_the_same_curves(project: Path) -> None:
    shown = dvc_json(project, "plots", "show")
    contents = {file: plot["content"] for file, (plot, *_) in shown["data"].items()}
    assert not shown.get("errors")
    assert len(contents) == len({str(content["title"]) for content in contents.values()}) == 2 * (3 + len(ABLATIONS))
    page = (project / "results" / "report.html").read_text(encoding="utf-8")
    for file, content in contents.items():
        x, y = ("epochs", "rsum") if file.endswith("history.csv") else ("steps", "negatives")
        values, written = pd.DataFrame(content["data"]["values"]), pd.read_csv(project / file)
        assert values[x].astype(int).tolist() == list(range(1, len(written) + 1))
        assert values[y].astype(float).tolist() == written[y].tolist()
        (feature,) = {"region", "grid", "patch"} & set(file.split("-"))
        for epoch, rsum in enumerate(written["rsum"] if y == "rsum" else (), start=1):
            assert f"{feature}, seed 0, epoch {epoch}: {rsum:.1f}</title>" in page


def test_metrics_show_what_the_page_and_the_table_show(project: Path) -> None:
    (shown,) = dvc_json(project, "metrics", "show").values()
    rsum = shown["data"]["results/metrics.json"]["data"]["vse2ad-RGP-bigru-s0"]["all"]["rsum"]
    for file in ("report.html", "tables/vse2ad_table1.md"):
        assert f"{rsum:.1f}" in (project / "results" / file).read_text(encoding="utf-8")


def test_figures_are_drawn_as_far_as_there_is_something_to_draw(project: Path) -> None:
    drawn = {file.stem for file in (project / "results" / "figures").glob("*.pdf")}
    assert drawn == {"training_curve", "negatives", "pooling_coefficients", "retrieval_time", "retrieved_images",
                     "retrieved_captions"}
    index = (project / "results" / "figures" / "index.md").read_text(encoding="utf-8").replace("\\", "")
    assert "kmax_grid: needs four or more heads" in index


def test_ablations_stand_in_the_tables_that_they_fit(project: Path) -> None:
    measured = json.loads((project / "results" / "metrics.json").read_text(encoding="utf-8"))
    rsum = measured["vse2ad-noadopt-region-bigru-s0"]["all"]["rsum"]
    text = (project / "results" / "tables" / "vse2ad_table3.md").read_text(encoding="utf-8")
    assert text.count("−AdOpt") == 2
    assert f"{rsum:.1f}" in text


def test_a_run_without_ablations_has_no_stages_for_them(project: Path) -> None:
    params = project / "params.yaml"
    before = params.read_text(encoding="utf-8")
    settings = yaml.safe_load(before)
    settings["run"]["ablations"]["recipes"] = []
    params.write_text(yaml.safe_dump(settings), encoding="utf-8")
    listed = dvc(project, "stage", "list")
    ran = stages_run(dvc(project, "repro", "--dry"))
    params.write_text(before, encoding="utf-8")
    assert "ablation" not in listed
    assert "score@vse2ad-region-bigru-0" in listed
    assert "evaluate" in ran
    assert ran <= {"evaluate", "tables", "figures", "report"}


def test_one_parameter_reruns_only_what_depends_on_it(project: Path) -> None:
    settings = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))
    settings["features"]["light"]["grid"]["grid"] = 1
    before = json.loads((project / "results" / "metrics.json").read_text(encoding="utf-8"))
    (project / "params.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    ran = stages_run(dvc(project, "repro"))
    assert ran == {"extract@grid", "train@vse2ad-grid-bigru-0", "score@vse2ad-grid-bigru-0",
                   "ensemble-RG@vse2ad-bigru-0", "ensemble-RGP@vse2ad-bigru-0", "evaluate", "tables", "figures",
                   "report"}
    assert stages_run(dvc(project, "repro")) == set()
    after = json.loads((project / "results" / "metrics.json").read_text(encoding="utf-8"))
    (changed,) = dvc_json(project, "metrics", "diff").values()
    grid = changed["vse2ad-grid-bigru-s0.all.t2i.mean_rank"]
    assert (grid["old"], grid["new"]) == tuple(
        results["vse2ad-grid-bigru-s0"]["all"]["t2i"]["mean_rank"] for results in (before, after))
    assert not any(name.startswith("vse2ad-region") for name in changed)

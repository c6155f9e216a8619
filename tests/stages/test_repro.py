"""The whole road: `dvc repro` on a tiny sample, twice, and once more with a parameter touched."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from preloaded import Commands
from tiny_bert import tiny_bert
from tiny_project import ABLATIONS, FIGURES, ROOT

from pipeline.foundation.artefacts import code
from stages import cli

pytestmark = pytest.mark.slow

ALWAYS = {"plan", "manifest"}
AFTER = {"score", "evaluate", "tables", "figures", "report"}
"""What follows another system."""
Change = Callable[[dict[str, Any]], object]


class Run:
    """A finished run: every test puts back what it changes."""

    def __init__(self, folder: Path, commands: Commands) -> None:
        self.folder, self.commands = folder, commands
        self.params = folder / "params.yaml"

    def dvc(self, *words: str) -> str:
        """Run DVC there; returns what it printed."""
        ran = self.commands("dvc", *words, cwd=self.folder)
        return ran.stdout + ran.stderr

    def answer(self, *words: str) -> Any:
        """What a DVC command prints with --json."""
        return json.loads(self.commands("dvc", *words, "--json", cwd=self.folder).stdout)

    def pipeline(self, *words: str) -> None:
        """Run a command there, in this process."""
        there = ("--root", str(self.folder), "--params", str(self.params))
        cli.cli.main([*words, *there], standalone_mode=False)

    def status(self) -> set[str]:
        """The stages that DVC says it would run."""
        return set(self.answer("status")) - ALWAYS

    def replanned(self) -> set[str]:
        """The stages that depend on a file of the plan of which dvc.lock has another digest. A file
        that no stage depends on is named by its own name.
        """
        digests = {}
        for file in (self.folder / "results" / "plan").rglob("*.json"):
            path = file.relative_to(self.folder).as_posix()
            digests[path] = hashlib.md5(file.read_bytes()).hexdigest()
        new = set(digests)
        stages = set()
        locked = yaml.safe_load((self.folder / "dvc.lock").read_text(encoding="utf-8"))
        for name, stage in locked["stages"].items():
            for read in stage.get("deps", []):
                path = read["path"]
                new.discard(path)
                if path in digests and digests[path] != read["md5"]:
                    stages.add(name)
        return (stages - ALWAYS) | new

    @contextlib.contextmanager
    def changed(self, change: Change) -> Iterator[None]:
        """Settings that are changed, and planned; both are put back."""
        before = self.params.read_text(encoding="utf-8")
        settings = yaml.safe_load(before)
        change(settings)
        self.params.write_text(yaml.safe_dump(settings), encoding="utf-8")
        try:
            with self.plan_put_back():
                self.pipeline("lab", "plan")
                yield
        finally:
            self.params.write_text(before, encoding="utf-8")

    @contextlib.contextmanager
    def plan_put_back(self) -> Iterator[None]:
        plan = self.folder / "results" / "plan"
        before = {file: file.read_bytes() for file in plan.rglob("*.json")}
        try:
            yield
        finally:
            shutil.rmtree(plan)
            for file, content in before.items():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)

    def outdated_by(self, change: Change) -> set[str]:
        """The stages that a change of the settings makes DVC run, as the plan says."""
        with self.changed(change):
            return self.replanned()


def updated(section: str, values: dict[str, Any]) -> Change:
    """Other values in a section of the settings."""
    return lambda settings: settings[section].update(values)


@pytest.fixture
def run(finished: Path, commands: Commands) -> Run:
    return Run(finished, commands)


@pytest.fixture
def project(run: Run) -> Path:
    return run.folder


@pytest.fixture
def copy(run: Run, tmp_path: Path) -> Run:
    """As on another machine, with the first run's features and heads."""
    shutil.copytree(run.folder, tmp_path / "copy", symlinks=True)
    return Run(tmp_path / "copy", run.commands)


def stages_run(printed: str) -> set[str]:
    """The stages that DVC ran, but for those that always run."""
    ran = set(re.findall(r"Running stage '([^']+)'", printed))
    assert ran >= ALWAYS
    return ran - ALWAYS


def test_results_are_there_and_traceable(project: Path) -> None:
    results = json.loads((project / "results" / "metrics.json").read_text(encoding="utf-8"))
    assert {"vse2ad-R-bigru-s0", "vse2ad-RG-bigru-s0", "vse2ad-RGP-bigru-s0"} <= set(results)
    assert "vse2ad-region-bigru-s0" not in results  # R is made of it alone
    made_from = results["vse2ad-RGP-bigru-s0"]["record"]["facts"]
    assert (made_from["dataset"], made_from["split"], made_from["seed"]) == ("sample", "test", 0)
    assert made_from["untrained"] == ["region", "grid", "patch"]
    assert [len(member["checkpoint"]) for member in made_from["members"]] == [64] * 3
    assert 0 <= results["vse2ad-RGP-bigru-s0"]["all"]["RSUM"] <= 600


def test_tables_hold_published_and_measured_rows_apart(project: Path) -> None:
    text = (project / "results" / "tables" / "vse2ad_table1.tex").read_text(encoding="utf-8")
    rsum = json.loads((project / "results" / "metrics.json").read_text())["vse2ad-RGP-bigru-s0"][
        "all"
    ]["RSUM"]
    panel = text.index("on the sample of rendered scenes")
    assert 0 < text.index("527.8") < panel  # VSE+2AD, BiGRU, R on COCO 1K as published
    assert "527.8" not in text[panel:]
    assert f"{rsum:.1f}" in text[panel:]
    assert r"\toprule" in text
    assert (project / "results" / "tables" / "vse2ad_table1.md").stat().st_size > 1000


def test_plots_and_the_page_show_the_same_curves(run: Run, project: Path) -> None:
    shown = run.answer("plots", "show")
    charts = {file: plot["content"] for file, (plot, *_) in shown["data"].items()}
    assert not shown.get("errors")
    assert set(charts) == {
        f"results/curves/{value}/heads.csv" for value in ("RSUM", "negatives")
    }  # a chart each
    page = (project / "results" / "report.html").read_text(encoding="utf-8")
    for x, y, file in (("epoch", "RSUM", "history.csv"), ("steps", "negatives", "steps.csv")):
        chart = charts[f"results/curves/{y}/heads.csv"]
        assert [chart["encoding"][channel]["field"] for channel in ("x", "y", "color")] == [
            x,
            y,
            "head",
        ]
        assert "<DVC_METRIC" not in json.dumps(chart)
        curves = dict(list(pd.DataFrame(chart["data"]["values"]).groupby("head")))
        assert len(curves) == 3 + len(ABLATIONS)
        for head, values in curves.items():
            written = pd.read_csv(project / "heads" / "sample" / head / file)
            assert values[x].astype(int).tolist() == list(range(1, len(written) + 1))
            assert values[y].astype(float).tolist() == written[y].tolist()
            (feature,) = {"region", "grid", "patch"} & set(head.split("-"))
            for epoch, rsum in enumerate(written["RSUM"] if y == "RSUM" else (), start=1):
                assert f"{feature}, seed 0, epoch {epoch}: {rsum:.1f}</title>" in page


def test_metrics_show_what_the_page_and_the_table_show(run: Run, project: Path) -> None:
    (shown,) = run.answer("metrics", "show").values()
    measured = json.loads((project / "results" / "metrics.json").read_text(encoding="utf-8"))
    assert set(shown["data"]) == {f"results/headline/{name}.json" for name in measured}
    row = shown["data"]["results/headline/vse2ad-RGP-bigru-s0.json"]["data"]
    recalls = {
        f"{way} R@{k}": measured["vse2ad-RGP-bigru-s0"]["all"][way][f"R@{k}"]
        for way in ("i2t", "t2i")
        for k in (1, 5, 10)
    }
    rsum = row["RSUM"]
    assert row == {"RSUM": measured["vse2ad-RGP-bigru-s0"]["all"]["RSUM"], **recalls}
    for file in ("report.html", "tables/vse2ad_table1.md"):
        assert f"{rsum:.1f}" in (project / "results" / file).read_text(encoding="utf-8")


def test_the_figures_that_the_settings_name_are_drawn(project: Path) -> None:
    drawn = {file.stem for file in (project / "results" / "figures").glob("*.pdf")}
    assert drawn == set(FIGURES)


def test_ablations_stand_in_the_tables_that_they_fit(project: Path) -> None:
    measured = json.loads((project / "results" / "metrics.json").read_text(encoding="utf-8"))
    rsum = measured["vse2ad-noadopt-region-bigru-s0"]["all"]["RSUM"]
    text = (project / "results" / "tables" / "vse2ad_table3.md").read_text(encoding="utf-8")
    assert text.count("| −AdOpt") == 2  # published and measured
    assert f"{rsum:.1f}" in text


def test_dvc_runs_what_the_changed_plan_says_and_shows_changes_in_the_users_own_words(
    run: Run,
) -> None:
    def change(settings: dict[str, Any]) -> None:
        settings["recipes"]["vse2ad"] = {"learning_rate": 0.001}
        settings["training"]["sample"]["epochs"] = 3
        settings["typesetting"]["figure_font"] = "serif"

    with run.changed(change):
        outdated = run.status()
        assert outdated == run.replanned()
        shown = run.answer("params", "diff")
    assert {name.partition("@")[0] for name in outdated} == {"train", "train-ablation", "figures"}
    assert shown == {
        "params.yaml": {
            "recipes.vse2ad.learning_rate": {"old": None, "new": 0.001},
            "training.sample.epochs": {"old": 2, "new": 3, "diff": 1},
            "typesetting.figure_font": {"old": None, "new": "serif"},
        }
    }


def test_an_encoder_to_train_on_and_captions_features_run_what_they_need(
    run: Run, tmp_path: Path
) -> None:
    def finetune(settings: dict[str, Any]) -> None:
        settings["run"]["encoders"] = [
            {"name": "mine", "model": "clip:models/clip", "finetune": "projections"}
        ]

    def captions(settings: dict[str, Any]) -> None:
        settings["run"]["texts"].append("features")
        settings["features"]["light"]["words"] = {"engine": "text-tower", "weights": tower}
        settings["training"]["sample"]["captions"] = "words"

    def both(settings: dict[str, Any]) -> None:
        finetune(settings)
        captions(settings)

    tower = str(tiny_bert(tmp_path / "tower", layers=1))
    assert run.outdated_by(finetune) == {"finetune", *AFTER}
    features = ("region", "grid", "patch")
    plans = {f"results/plan/train/vse2ad-{feature}-features-s0.json" for feature in features}
    assert run.outdated_by(captions) == plans | AFTER
    stages = {f"train@vse2ad-{feature}-features-0" for feature in features}
    with run.changed(both):
        assert run.status() == {"finetune", *stages, *AFTER}


def test_a_changed_recipe_reruns_its_own_heads(run: Run) -> None:
    noadopt = "train-ablation@vse2ad-noadopt-region-bigru-0"  # which builds on vse2ad
    of_vse2ad = {f"train@vse2ad-{feature}-bigru-0" for feature in ("region", "grid", "patch")}
    for recipe, heads in {
        "vse_infty": {"train-ablation@vse_infty-region-bigru-0"},
        "vse2ad": {noadopt, *of_vse2ad},
    }.items():
        slower = updated("recipes", {recipe: {"learning_rate": 0.001}})
        assert run.outdated_by(slower) == heads, recipe


def test_where_it_is_computed_and_a_recipe_that_is_not_run_rerun_nothing(run: Run) -> None:
    def elsewhere(settings: dict[str, Any]) -> None:
        settings["recipes"]["vse_pp"] = {"drop_items": 0.1}
        settings["training"]["sample"].update(device="cuda", pieces=2)
        settings["extract"].update(
            workers=4,
            batch_size=2,
            device="cuda",
            decoders=3,
            writers=2,
            ahead=4,
            on_error="skip",
            shard_images=7,
            compressor="zstd",
        )
        settings["evaluate"].update(block_megabytes=1.0)

    assert run.outdated_by(elsewhere) == set()


def test_typesetting_reruns_what_it_sets(run: Run) -> None:
    for setting, value, stages in (
        ("column_width", 8.0, {"tables"}),
        ("figure_font", "serif", {"figures"}),
    ):
        assert run.outdated_by(updated("typesetting", {setting: value})) == stages, setting


def test_a_feature_and_the_ablations_are_left_out_by_a_setting(
    copy: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = yaml.safe_load(copy.params.read_text(encoding="utf-8"))
    settings["run"]["features"] = ["grid", "patch"]
    settings["run"]["ensembles"] = ["R", "RG", "GP"]
    settings["run"]["ablations"] = []
    copy.params.write_text(yaml.safe_dump(settings), encoding="utf-8")
    copy.pipeline("lab", "plan")
    assert "RG: left out, run.features has no region" in capsys.readouterr().err
    assert copy.status() == AFTER
    for command in ("score", "ensemble", "evaluate"):
        copy.pipeline(command)
    measured = json.loads((copy.folder / "results" / "metrics.json").read_text(encoding="utf-8"))
    assert list(measured) == [f"vse2ad-{visual}-bigru-s0" for visual in ("grid", "patch", "GP")]


def test_code_that_changes_no_number_reruns_nothing(run: Run, tmp_path: Path) -> None:
    """As a copy of the code plans it in which a module has another name, sections of the settings
    have another option, and a message other words.
    """
    for name in ("pipeline", "stages", "manifests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    training = tmp_path / "pipeline" / "make" / "training"
    (training / "loop.py").rename(training / "epochs.py")
    for file in (tmp_path / "pipeline").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        renamed = text.replace("pipeline.make.training.loop", "pipeline.make.training.epochs")
        file.write_text(renamed, encoding="utf-8")
    option = "    shown: bool = False\n"
    judging = "foundation/settings/judging.py"
    for module, old, new in (
        ("make/features/extractors/options.py", "    grid: Count", f"{option}    grid: Count"),
        (judging, "    batch_size: Count\n\n", f"    batch_size: Count\n{option}\n"),
        (judging, "    figure_font:", f"{option}    figure_font:"),
        ("foundation/parts/errors.py", "there are: {", "choose from {"),
    ):
        file = tmp_path / "pipeline" / module
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")
    with run.plan_put_back():
        shutil.rmtree(run.folder / "results" / "plan")
        run.commands("pipeline", "lab", "plan", cwd=run.folder, PYTHONPATH=str(tmp_path))
        assert (run.folder / "results" / "plan" / "train").is_dir()
        assert run.replanned() == set()


def test_a_raised_version_reruns_what_rests_on_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_triplet = {f"train-ablation@{recipe}-region-bigru-0" for recipe in ABLATIONS}
    for part, stages in {
        "poolings/gcn": {"throughput"},
        "report": {"report"},
        # Scores are made by the parts of their heads: the records of a head and of its scores have
        # the same versions.
        "objectives/triplet": {"score", *of_triplet},
        "extractors/grid": {"extract@grid"},
    }.items():
        with monkeypatch.context() as patch:
            patch.setitem(code.RAISED, part, code.RAISED.get(part, 1) + 1)
            assert run.outdated_by(dict) == stages, part


def test_one_parameter_reruns_only_what_depends_on_it_and_a_second_run_runs_nothing(
    copy: Run,
) -> None:
    settings = yaml.safe_load(copy.params.read_text(encoding="utf-8"))
    settings["features"]["light"]["grid"]["grid"] = 1
    metrics = copy.folder / "results" / "metrics.json"
    before = json.loads(metrics.read_text(encoding="utf-8"))
    copy.params.write_text(yaml.safe_dump(settings), encoding="utf-8")
    ran = stages_run(copy.dvc("repro"))
    assert ran == {"extract@grid", "train@vse2ad-grid-bigru-0", *AFTER}
    assert stages_run(copy.dvc("repro")) == set()
    after = json.loads(metrics.read_text(encoding="utf-8"))
    changed = copy.answer("metrics", "diff")
    grid = changed["results/headline/vse2ad-grid-bigru-s0.json"]["RSUM"]
    assert (grid["old"], grid["new"]) == tuple(
        results["vse2ad-grid-bigru-s0"]["all"]["RSUM"] for results in (before, after)
    )
    assert not any("vse2ad-region" in name for name in changed)

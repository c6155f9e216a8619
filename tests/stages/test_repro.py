"""The whole road: `dvc repro` on a tiny sample, twice, and once more with a parameter touched."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from preloaded import Commands
from tiny_bert import tiny_bert
from tiny_project import ABLATIONS, ROOT

pytestmark = pytest.mark.slow

ALWAYS = {"plan", "manifest"}


class Run:
    """A finished run: every test puts back what it changes."""

    def __init__(self, folder: Path, commands: Commands) -> None:
        self.folder, self.commands = folder, commands

    def dvc(self, *words: str) -> str:
        """Run DVC there; returns what it printed."""
        ran = self.commands("dvc", *words, cwd=self.folder)
        return ran.stdout + ran.stderr

    def answer(self, *words: str) -> Any:
        """What a DVC command prints with --json."""
        return json.loads(self.commands("dvc", *words, "--json", cwd=self.folder).stdout)

    def outdated(self, **environment: str) -> set[str]:
        """The stages that DVC would run, with these variables for the plan, which is put back."""
        plan = self.folder / "results" / "plan"
        before = {file: file.read_bytes() for file in plan.rglob("*.json")}
        self.commands("pipeline", "lab", "plan", cwd=self.folder, **environment)
        found = set(self.answer("status"))
        shutil.rmtree(plan)
        for file, content in before.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return found - ALWAYS

    def outdated_by(self, change: Callable[[dict[str, Any]], object]) -> set[str]:
        """The stages that a change of the settings makes DVC run; the change is undone."""
        params = self.folder / "params.yaml"
        before = params.read_text(encoding="utf-8")
        settings = yaml.safe_load(before)
        change(settings)
        params.write_text(yaml.safe_dump(settings), encoding="utf-8")
        found = self.outdated()
        params.write_text(before, encoding="utf-8")
        return found


@pytest.fixture
def run(finished: Path, commands: Commands) -> Run:
    return Run(finished, commands)


@pytest.fixture
def project(run: Run) -> Path:
    return run.folder


def stages_run(printed: str) -> set[str]:
    """The stages that DVC ran, but for those that always run."""
    ran = set(re.findall(r"Running stage '([^']+)'", printed))
    assert ran >= ALWAYS
    return ran - ALWAYS


def test_results_are_there_and_traceable(project: Path) -> None:
    results = json.loads((project / "results" / "metrics.json").read_text(encoding="utf-8"))
    assert {
        "vse2ad-region-bigru-s0",
        "vse2ad-R-bigru-s0",
        "vse2ad-RG-bigru-s0",
        "vse2ad-RGP-bigru-s0",
    } <= set(results)
    made_from = results["vse2ad-RGP-bigru-s0"]["record"]["facts"]
    assert (made_from["dataset"], made_from["split"], made_from["seed"]) == ("sample", "test", 0)
    assert made_from["untrained"] == ["region", "grid", "patch"]
    assert [len(member["checkpoint"]) for member in made_from["members"]] == [64] * 3
    assert 0 <= results["vse2ad-RGP-bigru-s0"]["all"]["RSUM"] <= 600
    single, ensemble = (results[f"vse2ad-{name}-bigru-s0"]["all"] for name in ("region", "R"))
    assert single == ensemble


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


def test_a_second_run_runs_nothing(run: Run) -> None:
    assert stages_run(run.dvc("repro")) == set()


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


def test_figures_are_drawn_as_far_as_there_is_something_to_draw(project: Path) -> None:
    drawn = {file.stem for file in (project / "results" / "figures").glob("*.pdf")}
    assert drawn == {
        "training_curve",
        "negatives",
        "pooling_coefficients",
        "retrieval_time",
        "retrieved_images",
        "retrieved_captions",
    }


def test_ablations_stand_in_the_tables_that_they_fit(project: Path) -> None:
    measured = json.loads((project / "results" / "metrics.json").read_text(encoding="utf-8"))
    rsum = measured["vse2ad-noadopt-region-bigru-s0"]["all"]["RSUM"]
    text = (project / "results" / "tables" / "vse2ad_table3.md").read_text(encoding="utf-8")
    assert text.count("| −AdOpt") == 2  # published and measured
    assert f"{rsum:.1f}" in text


def test_a_run_without_ablations_has_no_stages_for_them(run: Run) -> None:
    ran = run.outdated_by(lambda settings: settings["run"].update(ablations=[]))
    assert ran == {"score", "evaluate", "tables", "figures", "report"}


def test_an_encoder_to_train_on_and_captions_features_run_what_they_need(
    run: Run, tmp_path: Path
) -> None:
    after = {"score", "evaluate", "tables", "figures", "report"}
    assert run.outdated_by(
        lambda settings: settings["run"].update(
            encoders=[{"name": "mine", "model": "clip:models/clip", "finetune": "projections"}]
        )
    ) == {"finetune", *after}

    def features(settings: dict[str, Any]) -> None:
        settings["run"]["texts"].append("features")
        settings["features"]["light"]["words"] = {"engine": "text-tower", "weights": tower}
        settings["training"]["sample"]["captions"] = "words"

    tower = str(tiny_bert(tmp_path / "tower", layers=1))
    assert run.outdated_by(features) == after | {
        f"train@vse2ad-{feature}-features-0" for feature in ("region", "grid", "patch")
    }


@pytest.mark.parametrize(
    ("recipe", "heads"),
    [
        ("vse_infty", {"train-ablation@vse_infty-region-bigru-0"}),
        (
            "vse2ad",
            {
                "train-ablation@vse2ad-noadopt-region-bigru-0",  # which builds on it
                *(f"train@vse2ad-{feature}-bigru-0" for feature in ("region", "grid", "patch")),
            },
        ),
    ],
)
def test_a_changed_recipe_reruns_its_own_heads(run: Run, recipe: str, heads: set[str]) -> None:
    assert (
        run.outdated_by(
            lambda settings: settings["recipes"].update({recipe: {"learning_rate": 0.001}})
        )
        == heads
    )


def test_dvc_shows_a_change_in_the_users_own_words(run: Run, project: Path) -> None:
    reported: list[Any] = []

    def change(settings: dict[str, Any]) -> None:
        settings["recipes"]["vse2ad"] = {"learning_rate": 0.001}
        settings["training"]["sample"]["epochs"] = 3

    class Asked(Run):
        def answer(self, *words: str) -> Any:
            reported.append(super().answer("params", "diff"))  # after `pipeline lab plan`
            return super().answer(*words)

    assert Asked(run.folder, run.commands).outdated_by(change)
    assert reported == [
        {
            "params.yaml": {
                "recipes.vse2ad.learning_rate": {"old": None, "new": 0.001},
                "training.sample.epochs": {"old": 2, "new": 3, "diff": 1},
            }
        }
    ]


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


@pytest.mark.parametrize(
    ("setting", "value", "stages"),
    [
        ("table_bold", "best", {"tables", "report"}),
        ("column_width", 8.0, {"tables"}),
        ("figure_font", "serif", {"figures"}),
    ],
)
def test_typesetting_reruns_what_it_sets(
    run: Run, setting: str, value: object, stages: set[str]
) -> None:
    assert (
        run.outdated_by(lambda settings: settings["typesetting"].update({setting: value})) == stages
    )


def test_a_feature_is_left_out_by_one_setting(run: Run, tmp_path: Path) -> None:
    """As on another machine, with the first run's features and heads."""
    copy = tmp_path / "copy"
    shutil.copytree(run.folder, copy)
    settings = yaml.safe_load((copy / "params.yaml").read_text(encoding="utf-8"))
    settings["run"]["features"] = ["grid", "patch"]
    settings["run"]["ensembles"] = ["R", "RG", "GP"]
    settings["run"]["ablations"] = []
    (copy / "params.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    without = Run(copy, run.commands)
    printed = without.dvc("repro", "report")
    assert "RG: left out, run.features has no region" in printed
    assert stages_run(printed) == {"score", "evaluate", "report"}
    assert without.outdated() == {"tables", "figures"}
    measured = json.loads((copy / "results" / "metrics.json").read_text(encoding="utf-8"))
    assert list(measured) == [f"vse2ad-{visual}-bigru-s0" for visual in ("grid", "patch", "GP")]
    assert "Grid+Patch" in (copy / "results" / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def other(run: Run, tmp_path: Path) -> Callable[..., set[str]]:
    """Which stages are out of date by a copy of the code with changed files."""
    for name in ("pipeline", "stages", "manifests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))

    def after(module: str, old: str, new: str) -> set[str]:
        file = tmp_path / module
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")
        return run.outdated(PYTHONPATH=str(tmp_path))

    return after


def test_code_that_changes_no_number_reruns_nothing(
    other: Callable[..., set[str]], tmp_path: Path
) -> None:
    (tmp_path / "pipeline" / "make" / "training" / "loop.py").rename(
        tmp_path / "pipeline" / "make" / "training" / "epochs.py"
    )
    for file in (tmp_path / "pipeline").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        file.write_text(
            text.replace("pipeline.make.training.loop", "pipeline.make.training.epochs"),
            encoding="utf-8",
        )
    assert not other(
        "pipeline/make/features/extractors/options.py",
        "    grid: Count",
        "    shown: bool = False\n    grid: Count",
    )
    assert not other(
        "pipeline/foundation/settings/judging.py",
        "    batch_size: Count\n\n",
        "    batch_size: Count\n    shown: bool = False\n\n",
    )
    assert not other(
        "pipeline/foundation/settings/judging.py",
        "    figure_font:",
        "    shown: bool = False\n    figure_font:",
    )
    assert not other("pipeline/foundation/parts/errors.py", "there are: {", "choose from {")


def test_a_raised_version_reruns_what_rests_on_it(other: Callable[..., set[str]]) -> None:
    def raised(part: str) -> set[str]:
        version = "    return RAISED.get(part, 1)"
        return other(
            "pipeline/foundation/artefacts/code.py", version, f'{version} + (part == "{part}")'
        )

    assert raised("poolings/gcn") == {"throughput"}
    assert raised("report") == {"throughput", "report"}
    of_triplet = {f"train-ablation@{recipe}-region-bigru-0" for recipe in ABLATIONS}
    # Scores are made by the parts of their heads: the records of a head and of its scores have the
    # same versions.
    assert raised("objectives/triplet") == {"throughput", "report", "score", *of_triplet}
    assert raised("extractors/grid") >= {"extract@grid"}


def test_one_parameter_reruns_only_what_depends_on_it(run: Run, project: Path) -> None:
    settings = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))
    settings["features"]["light"]["grid"]["grid"] = 1
    before = json.loads((project / "results" / "metrics.json").read_text(encoding="utf-8"))
    (project / "params.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    ran = stages_run(run.dvc("repro"))
    assert ran == {
        "extract@grid",
        "train@vse2ad-grid-bigru-0",
        "score",
        "evaluate",
        "tables",
        "figures",
        "report",
    }
    assert stages_run(run.dvc("repro")) == set()
    after = json.loads((project / "results" / "metrics.json").read_text(encoding="utf-8"))
    changed = run.answer("metrics", "diff")
    grid = changed["results/headline/vse2ad-grid-bigru-s0.json"]["RSUM"]
    assert (grid["old"], grid["new"]) == tuple(
        results["vse2ad-grid-bigru-s0"]["all"]["RSUM"] for results in (before, after)
    )
    assert not any("vse2ad-region" in name for name in changed)

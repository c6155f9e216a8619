"""What `pipeline tables` says of a missing row makes the row, where a user does just that."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from invented import built, read_metrics, system

from pipeline.foundation import settings
from pipeline.foundation.settings import Recipe
from pipeline.foundation.settings.features import FEATURES, of_ensemble
from pipeline.foundation.settings.paths import Paths, systems
from pipeline.foundation.settings.run import Run
from pipeline.run.report.measured import Results
from stages import declared, missing_rows, paper
from stages.commands.paper import TablesOptions

SHIPPED = settings.load(Path(__file__).parents[2] / "params.yaml")
MINE = {"mine": SHIPPED.recipe("vse2ad-gpo")}
# The run of params.yaml, the table, its row, and how often something is done until the row is
# there: settings and commands, or commands alone.
CASES: dict[str, tuple[dict[str, Any], str, str, int]] = {
    "not in the run": ({"ablations": []}, "vse2ad_table4", "mine", 1),
    "another feature first": (
        {"ablations": ["mine"], "features": ["grid", "region"]},
        "vse2ad_tableA1",
        "mine",
        1,
    ),
    "no such feature": ({"ablations": ["mine"], "features": ["grid"]}, "vse2ad_table4", "mine", 1),
    "another text encoder first": (
        {"ablations": ["mine"], "texts": ["bert", "bigru"]},
        "vse2ad_table4",
        "mine",
        1,
    ),
    "a recipe of the run without region": (
        {"recipes": ["mine"], "features": ["grid"], "ensembles": []},
        "vse2ad_table4",
        "mine",
        1,
    ),
    "set, not trained": ({"ablations": ["mine"]}, "vse2ad_table4", "mine", 0),
    "set, seed 3": ({"ablations": ["mine"], "seeds": [3]}, "vse2ad_table4", "mine", 0),
    "any feature": ({"features": ["grid"], "ablations": []}, "vse_infty_table1", "vse_pp-max", 1),
    "no ensemble": ({"ensembles": ["R"]}, "vse2ad_table1", "vse2ad RGP bigru", 1),
    "no patches": ({"features": ["region", "grid"]}, "vse2ad_table1", "vse2ad RGP bigru", 1),
    "whole, not trained": ({}, "vse2ad_table1", "vse2ad RG bigru", 0),
    "whole, no BERT": ({}, "vse2ad_table2", "vse2ad RGP bert", 1),
    "whole, an ablation": ({}, "vse_infty_table2", "vse_infty RG bigru", 1),
    "whole, the ablation itself": ({}, "vse2ad_table1", "vse_infty R bigru", 0),
}


class Project:
    """A project whose heads and scores are names of folders, and whose results are invented."""

    def __init__(self, root: Path, run: dict[str, Any]) -> None:
        self.paths = Paths(root)
        self.trained: set[str] = set()
        self.evaluated: dict[str, Any] = {}
        self.settings = SHIPPED.model_copy(update={"recipes": SHIPPED.recipes | MINE})
        self.change(run)

    def change(self, run: dict[str, Any]) -> None:
        as_set = self.settings.run.model_dump(by_alias=True) | run
        self.settings = self.settings.model_copy(update={"run": Run.model_validate(as_set)})

    def advice(self, table: str, row: str) -> str | None:
        results = Results(read_metrics(self.evaluated))
        tables = {table: built(table, self.evaluated)}
        lacking = missing_rows.missing(tables, results, self.settings, self.paths)
        for advice, rows in lacking.items():
            if row in rows[table]:
                return advice
        return None

    def set_as_said(self, advice: str) -> None:
        """Change the settings as the advice says of a row."""
        run = self.settings.run.model_dump()
        said = advice.partition(" in params.yaml, and run `dvc repro`")[0]
        for change in re.split(", | and ", said):
            first = re.fullmatch("put (\\w+) first in `(\\w+)`", change)
            added = re.fullmatch("add (\\w+|the recipe) to `(\\w+)`", change)
            if first:
                others = [name for name in run[first[2]] if name != first[1]]
                run[first[2]] = [first[1], *others]
            elif added:
                run[added[2]].append(self.recipe if added[1] == "the recipe" else added[1])
            else:
                assert change == "move the recipe from `ablations` to `recipes`"
                run["ablations"].remove(self.recipe)
                run["recipes"].append(self.recipe)
        self.change(run)

    recipe = ""

    def evaluate(self, names: Any) -> None:
        """Measure systems of the run."""
        known = systems(self.settings.run)
        for name in names:
            recipe, visual, text, seed = known[name]
            features = (visual,) if visual in FEATURES else of_ensemble(visual)
            self.evaluated |= system(
                "sample",
                "all",
                recipe=recipe,
                ensemble=visual if visual not in FEATURES else None,
                features=dict.fromkeys(features, "small"),
                text=text,
                seed=seed,
                settings=self.settings.recipe(recipe).recorded(),
            )

    def type(self, command: str) -> None:
        """Do what a command does with names."""
        name, *words = command.split()
        known = systems(self.settings.run)
        dataset = self.settings.run.dataset
        if name == "extract":
            self.paths.features(dataset, words[1]).mkdir(parents=True)
        if name == "train":
            options = dict(zip(words[::2], words[1::2], strict=True))
            assert self.paths.features(dataset, options["--feature"]).exists()
            text = options.get("--text", "bigru")
            seed = options.get("--seed", "0")
            self.trained.add(f"{options['--recipe']}-{options['--feature']}-{text}-s{seed}")
        if name == "score":
            assert words[1] in self.trained
            self.paths.similarity(dataset, words[1], "test").mkdir(parents=True)
        if name == "ensemble":
            visual, _, recipe, _, text, _, seed = words
            fused = f"{recipe}-{visual}-{text}-s{seed}"
            self.paths.similarity(dataset, fused, "test").mkdir(parents=True)
        if name == "evaluate":
            folder = self.paths.similarity(dataset, "a", "test").parent
            self.evaluate(path.stem for path in folder.iterdir() if path.stem in known)


@pytest.fixture(params=CASES)
def project(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Project, str, str, int]:
    run, table, row, changes = CASES[request.param]
    made = Project(tmp_path, run)
    made.recipe = row.split()[0]
    monkeypatch.setattr(
        missing_rows.HeadArtefact, "is_finished", lambda folder: folder.name in made.trained
    )
    return made, table, row, changes


def test_who_sets_what_is_said_and_runs_dvc_repro_has_the_row(
    project: tuple[Project, str, str, int],
) -> None:
    made, table, row, changes = project
    for _ in range(changes):
        advice = made.advice(table, row)
        assert advice is not None
        assert advice.endswith(" in params.yaml, and run `dvc repro`")
        made.set_as_said(advice)
    made.evaluate(systems(made.settings.run))
    assert made.advice(table, row) is None
    assert any(made.recipe == each.origin.recipe for each in read_metrics(made.evaluated))


def test_who_types_what_is_said_has_the_row_wherever_he_was_interrupted(
    project: tuple[Project, str, str, int],
) -> None:
    made, table, row, changes = project
    for _ in range(changes):
        made.set_as_said(str(made.advice(table, row)))
    while (advice := made.advice(table, row)) is not None:
        state = advice.partition(": run `dvc repro`, or ")[0]
        typed = re.findall("`pipeline (.+?)`", advice)
        assert typed[-2:] == ["evaluate", "tables"], advice
        assert state.startswith("in params.yaml, "), advice
        made.type(typed[0])


def test_a_recipe_that_was_trained_in_another_form_is_trained_again() -> None:
    recipe: dict[str, Any] = MINE["mine"].recorded() | {"learning_rate": 0.1}
    for of_method, said in (
        (None, "its head is of an earlier form of the recipe: run `dvc repro`, or `pipeline "),
        (
            {"learning_rate": 0.1},
            "differs in its poolings alone from this project's vse2ad, which is not measured: ",
        ),
    ):
        made = Project(Path("nowhere"), {"ablations": ["mine"], "recipes": ["vse_infty"]})
        if of_method:
            changed = {
                "vse2ad": SHIPPED.recipe("vse2ad").model_copy(update=of_method),
                "mine": MINE["mine"].model_copy(update=of_method),
            }
            recipes: dict[str, Recipe] = made.settings.recipes | changed
            made.settings = made.settings.model_copy(update={"recipes": recipes})
        made.evaluated = system("sample", "all", recipe="mine", settings=recipe)
        advice = made.advice("vse2ad_table4", "mine")
        assert advice is not None
        assert said in advice
        if of_method:
            assert "add vse2ad to `ablations` in params.yaml" in advice


def test_rows_are_named_also_of_tables_that_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Project(tmp_path, {"features": ["grid"], "ensembles": [], "ablations": ["mine"]})
    made.evaluate(systems(made.settings.run))
    results = Results(read_metrics(made.evaluated))
    monkeypatch.setattr(paper, "_results", lambda paths, request: results)
    said = (
        "put region first in `features` in params.yaml, and run `dvc repro`:\n  vse2ad_table4: mine"
    )
    for options, has_settings, is_said in (
        (TablesOptions(), True, True),
        (TablesOptions(chosen=("vse2ad_table4",)), True, True),
        (TablesOptions(chosen=("vse2ad_table4",), only="measured"), True, True),
        (TablesOptions(chosen=("vse2ad_table4",), only="published"), True, False),
        (TablesOptions(chosen=("systems",)), True, False),
        (TablesOptions(), False, False),  # scores in a folder that is no project
    ):
        monkeypatch.setattr(declared, "settings_file", lambda root, there=has_settings: there)
        paper.write_tables(made.paths, made.settings, options)
        printed = capsys.readouterr().out
        assert (said in printed) == is_said, (options, has_settings, printed)

"""The rows that the papers' tables would have of a project's recipes and lack, and what makes
each.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pipeline.foundation.settings import Recipe, Settings
from pipeline.foundation.settings.features import FEATURES, of_ensemble
from pipeline.foundation.settings.paths import Paths, system_name
from pipeline.judge.systems.scores.made import papers_ensemble
from pipeline.judge.tables import published
from pipeline.judge.tables.table import Table
from pipeline.make.training.artefact import HeadArtefact
from pipeline.run.report import names
from pipeline.run.report.measured import MeasuredSystem, Results
from pipeline.run.report.tables.ablations import ABLATIONS, BIGRU, REGIONS, Ablation
from pipeline.run.report.tables.systems import sources

# The tables of whole systems whose measured rows are of any data set: heads of one feature, and
# ensembles.
WHOLE_SYSTEMS = ("vse2ad_table1", "vse2ad_table2", "vse_infty_table2", "vse_infty_table3")
# The first command that a row waits for -> how far it is.
NOT_YET = {
    "extract": "not trained yet",
    "train": "not trained yet",
    "score": "trained, not scored yet",
    "ensemble": "scored, not fused yet",
    "evaluate": "scored, not evaluated yet",
}


class Row(NamedTuple):
    """A recipe on visual features, by their letters, with a text encoder."""

    recipe: str
    visual: str
    text: str


def missing(
    tables: Mapping[str, Table], results: Results, settings: Settings, paths: Paths
) -> dict[str, dict[str, list[str]]]:
    """List what tables lack.

    Returns:
        What makes rows, in words -> table -> the rows, in words. Of a table that varies one part of
            a method a row is a recipe; of whole systems a published method on features with a text
            encoder, for the run's recipes of that method.
    """
    of_source: dict[str, MeasuredSystem] = {}
    for system in results.systems:
        of_source |= dict.fromkeys(system.systems, system)
    project = _Project(settings, paths, results.systems)
    lacking: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, table in tables.items():
        shown = [of_source[source] for source in sources(table) if source in of_source]
        if name in ABLATIONS:
            for row in _of_ablation(ABLATIONS[name], shown, settings):
                advice = project.what_makes(row, ABLATIONS[name].poolings)
                if advice:
                    lacking[advice][name].append(row.recipe)
        elif name in WHOLE_SYSTEMS:
            for row in _of_whole_systems(name, shown, settings):
                advice = project.what_makes(row)
                if advice:
                    lacking[advice][name].append(f"{row.recipe} {row.visual} {row.text}")
    return lacking


def _of_ablation(
    varied: Ablation, shown: Sequence[MeasuredSystem], settings: Settings
) -> Iterator[Row]:
    """The rows that a table lacks which varies one part of a method."""
    run = settings.run
    visual = REGIONS
    text = BIGRU
    if varied.by_feature:
        visual = FEATURES[run.features[0]].letter
        text = run.texts[0]
    measured = {system.origin.recipe for system in shown}
    for recipe in varied.shown_recipes(settings.recipes):
        if recipe not in measured:
            yield Row(recipe, visual, text)


def _of_whole_systems(
    name: str, shown: Sequence[MeasuredSystem], settings: Settings
) -> Iterator[Row]:
    """The published rows of the run's methods beside which a table has no measured row."""
    measured = set()
    for system in shown:
        origin = system.origin
        measured.add((names.published_method(origin.recipe), origin.visual, origin.text))
    recipes_of = defaultdict(list)
    for recipe in (*settings.run.recipes, *settings.run.ablations):
        recipes_of[names.published_method(recipe)].append(recipe)
    wanted: dict[tuple[str, str, str], None] = {}
    for row in published.load(name):
        method = row["method"].removeprefix("Our: ")
        wanted[method, row["visual_feature"], row["text_encoder"]] = None
    for method, visual, text in wanted:
        if visual and (method, visual, text) not in measured:
            for recipe in recipes_of[method][:1]:
                yield Row(recipe, visual, text)


@dataclass(frozen=True)
class _Project:
    """What a project asks for and has made."""

    settings: Settings
    paths: Paths
    systems: Sequence[MeasuredSystem]  # What was evaluated

    def what_makes(self, row: Row, method: str | None = None) -> str:
        """What a user does for a row, by what is there already; "" where nothing is known to make
        it.

        method: of a table that varies one part of a method, the method whose recipes with other
            poolings have rows, "" for none; None for a table of whole systems.
        """
        changes = self._changes(row, is_ablation=method is not None)
        if changes:
            return f"{_listed(changes)} in params.yaml, and run `dvc repro`"
        measured = self._measured(row)
        if measured is None:
            return self._by_commands(row)
        recipe = self.settings.recipe(row.recipe).recorded()
        if _of_recipe(measured.members[0].settings) != _of_recipe(recipe):
            again = _listed(self._commands(row, redo=True))
            return f"its head is of an earlier form of the recipe: run `dvc repro`, or {again}"
        of_method = row._replace(recipe=method or row.recipe)
        if of_method == row or self._measured(of_method):
            return ""
        return (
            f"it differs in its poolings alone from this project's {method}, which is not measured: "
            f"{self.what_makes(of_method, '').replace('the recipe', str(method))}"
        )

    def _changes(self, row: Row, is_ablation: bool) -> list[str]:
        """What is to be changed in the section `run` of the settings, so that a run makes a row's
        system.
        """
        run = self.settings.run
        features = of_ensemble(row.visual)
        is_first = features == (run.features[0],) and row.text == run.texts[0]
        is_asked_for = row.recipe in run.ablations and is_first
        changes = []
        if row.recipe not in run.recipes and (is_ablation or is_asked_for):
            if row.recipe not in run.ablations:
                changes.append("add the recipe to `ablations`")
            if features[0] != run.features[0]:
                changes.append(f"put {features[0]} first in `features`")
            if row.text != run.texts[0]:
                changes.append(f"put {row.text} first in `texts`")
            return changes
        if row.recipe in run.ablations:
            changes.append("move the recipe from `ablations` to `recipes`")
        elif row.recipe not in run.recipes:
            changes.append("add the recipe to `recipes`")
        for feature in features:
            if feature not in run.features:
                changes.append(f"add {feature} to `features`")
        if len(features) > 1 and row.visual not in run.ensembles:
            changes.append(f"add {row.visual} to `ensembles`")
        if row.text not in run.texts:
            changes.append(f"add {row.text} to `texts`")
        return changes

    def _measured(self, row: Row) -> MeasuredSystem | None:
        """The evaluated system of a row's recipe, features and text encoder."""
        for system in self.systems:
            origin = system.origin
            if not origin.steps and (origin.recipe, origin.visual, origin.text) == row:
                return system
        return None

    def _by_commands(self, row: Row) -> str:
        """Which commands make a row that the settings ask for, and how far it is."""
        commands = self._commands(row)
        verb = commands[0].strip("`").split()[1]
        return f"in params.yaml, {NOT_YET[verb]}: run `dvc repro`, or {_listed(commands)}"

    def _commands(self, row: Row, redo: bool = False) -> list[str]:
        """The commands that make what is missing of a row; redo: or what is there, too."""
        run = self.settings.run
        seed = run.seeds[0]
        split = self.settings.score.split
        commands = []
        for feature in of_ensemble(row.visual):
            head = system_name(row.recipe, feature, row.text, seed)
            is_trained = HeadArtefact.is_finished(self.paths.head(run.dataset, head))
            is_scored = self.paths.similarity(run.dataset, head, split).exists()
            if redo or not is_trained:
                if not self.paths.features(run.dataset, feature).exists():
                    commands.append(f"extract --feature {feature}")
                train = f"train --feature {feature} --recipe {row.recipe}"
                if row.text != BIGRU:
                    train += f" --text {row.text}"
                if seed:
                    train += f" --seed {seed}"
                if redo:
                    train += " --if-changed redo"
                commands.append(train)
            if redo or not (is_trained and is_scored):
                commands.append(f"score --system {head}")
        ensemble = system_name(row.recipe, row.visual, row.text, seed)
        is_fused = self.paths.similarity(run.dataset, ensemble, split).exists()
        if len(row.visual) > 1 and (commands or not is_fused):
            commands.append(papers_ensemble(row.visual, row.recipe, row.text, seed))
        return [f"`pipeline {command}`" for command in (*commands, "evaluate", "tables")]


def _of_recipe(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a head's settings that are its recipe's."""
    return {key: value for key, value in settings.items() if key in Recipe.model_fields}


def _listed(parts: Sequence[str]) -> str:
    """Parts in a sentence: "a, b and c"."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last

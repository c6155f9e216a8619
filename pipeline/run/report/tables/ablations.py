"""The papers' tables that vary one part of a method, as manifests/published/tables.yaml lists
them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

from pydantic import BaseModel, ConfigDict

from pipeline.foundation.settings import Recipe, kinds
from pipeline.foundation.settings.loading import SIDES, shipped_recipe
from pipeline.judge.systems.scores.made import Member
from pipeline.judge.tables.published import PublishedRow
from pipeline.judge.tables.table import MISSING, Note
from pipeline.run.report import names
from pipeline.run.report.measured import MeasuredSystem, Results, but_for_pooling
from pipeline.run.report.result_rows import Measured, ResultRow, RowHeader
from pipeline.run.report.retrieval_table import LISTED, RetrievalTable

# The feature, by its letter, and the text encoder of tables that show these alone.
REGIONS = "R"
BIGRU = "bigru"


class Ablation(BaseModel):
    """Which systems one of the tables shows, and their labels."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    columns: tuple[str, ...]  # The columns of the published file that hold the labels
    # Recipe -> its labels; RECIPE/LETTER for a recipe on that visual feature alone.
    recipes: dict[str, tuple[str, ...]]
    # Cell of these columns -> its label, if the label is a different text.
    shown: dict[str, str] = {}
    # The method whose recipes with another pooling have rows, labelled by the poolings' titles:
    # those called METHOD-POOLING, and whatever differs in nothing else; "" for none.
    poolings: str = ""
    # Whether all features and text encoders are shown, named by the first label; else regions and
    # BiGRU alone.
    by_feature: bool = False
    text: str = ""  # The text encoder of published rows that name none
    parameters: bool = False  # Whether the parameters of the image pooling are shown

    def published(self, row: PublishedRow) -> RowHeader:
        """The header of a published row."""
        values = tuple(self.shown.get(row[column], row[column]) for column in self.columns)
        visual = row.cells.get("visual_feature", "")
        text = row.cells.get("text_encoder") or self.text
        parameters = row["params"] if self.parameters else ""
        return self._header(visual, text, values, parameters)

    def measured(self, system: MeasuredSystem) -> RowHeader | None:
        """The header of a measured system of one feature whose recipe has labels."""
        origin = system.origin
        values = self.values(system)
        if values is None or not (self.by_feature or _has_regions_and_bigru(system)):
            return None
        parameters = _parameters(system.members[0]) if self.parameters else ""
        return self._header(origin.visual, origin.text, values, parameters)

    def values(self, system: MeasuredSystem) -> tuple[str, ...] | None:
        """The labels of a system of one feature, whatever that is and whoever reads the captions;
        None for a recipe that varies something else, and for several features.
        """
        origin = system.origin
        if len(origin.visual) > 1:
            return None
        return self.labels(origin.recipe, origin.visual) or self._pooling(system)

    def labels(self, recipe: str, visual: str = REGIONS) -> tuple[str, ...] | None:
        """The labels of a recipe; None for a recipe that varies something else."""
        paper, pooling = names.pooled(recipe)
        if self.poolings and paper == self.poolings:
            return (kinds.TABLES["poolings"].title(pooling),)
        return self.recipes.get(f"{recipe}/{visual}") or self.recipes.get(recipe)

    def shown_recipes(self, recipes: Mapping[str, Recipe]) -> list[str]:
        """The recipes of a project that have rows once they are measured."""
        shown = [recipe.partition("/")[0] for recipe in self.recipes]
        method = recipes.get(self.poolings)
        if method is not None:
            of_method = but_for_pooling(method.recorded())
            for name, recipe in recipes.items():
                is_pooled = but_for_pooling(recipe.recorded()) == of_method
                if is_pooled and poolings(recipe) != poolings(method):
                    shown.append(name)
        return list(dict.fromkeys(shown))

    def _pooling(self, system: MeasuredSystem) -> tuple[str, ...] | None:
        """The titles of the poolings of a system that differs in these alone, of one if both sides
        have the same; None for other systems, and for other options of the method's own pooling.
        """
        if not self.poolings or self.poolings not in system.but_for_pooling:
            return None
        settings = system.members[0].settings
        names_of_sides = [settings[side]["name"] for side in SIDES if side in settings]
        shipped = shipped_recipe(self.poolings)
        if shipped is None or len(names_of_sides) < len(SIDES):
            return None
        if names_of_sides == poolings(shipped):
            return None
        titles = map(kinds.TABLES["poolings"].title, dict.fromkeys(names_of_sides))
        return ("–".join(titles),)

    def _header(self, visual: str, text: str, values: tuple[str, ...], counted: str) -> RowHeader:
        if not self.by_feature:
            return RowHeader(values, identity=values)
        features = f"{names.features(visual)} + {names.encoder(text)}"
        named = (features, *values)
        labels = (*named, counted) if self.parameters else named
        return RowHeader(labels, group=features, identity=named)


@dataclass(frozen=True, kw_only=True)
class AblationTable(RetrievalTable):
    """A table that varies one part of a method."""

    varied: Ablation

    def measure(self, results: Results, printed: Sequence[ResultRow]) -> Measured:
        """What was measured, see `PaperTable.measure`, and a note on recipes that were measured on
        features or with text encoders that the table does not show.
        """
        measured = super().measure(results, printed)
        with_row = {system.origin.recipe for system in self._systems(results)}
        elsewhere: dict[str, None] = {}
        for system in results.systems:
            origin = system.origin
            if origin.recipe not in with_row and self.varied.values(system):
                features = f"{names.features(origin.visual)}, {names.encoder(origin.text)}"
                elsewhere[f"{origin.recipe} ({features})"] = None
        if not elsewhere:
            return measured
        left_out = f"Region features with BiGRU alone have rows, not {', '.join(elsewhere)}."
        return replace(measured, notes=[*measured.notes, Note(left_out)])


def _has_regions_and_bigru(system: MeasuredSystem) -> bool:
    return (system.origin.visual, system.origin.text) == (REGIONS, BIGRU)


def poolings(recipe: Recipe) -> list[str]:
    """The names of a recipe's poolings, of images and of captions."""
    return [recipe.image_pooling.name, recipe.text_pooling.name]


def _parameters(member: Member) -> str:
    """The parameters of a head's image pooling as the paper prints them: 0 or 6.3M."""
    how = member.settings.get("image_pooling")
    dimension = member.settings.get("dimension")
    if not how or not dimension:
        return MISSING
    options = {key: value for key, value in how.items() if key != "name"}
    module = kinds.TABLES["poolings"].build(how["name"], int(dimension), **options)
    count = sum(parameter.numel() for parameter in module.parameters())
    return f"{count / 1e6:.1f}M" if count else "0"


ABLATIONS = {name: Ablation(**said["varied"]) for name, said in LISTED.items() if "varied" in said}
_TABLES = {
    name: AblationTable.listed(
        name, measured=varied.measured, published=varied.published, varied=varied
    )
    for name, varied in ABLATIONS.items()
}
TABLES = SimpleNamespace(**_TABLES)

"""The papers' tables that vary one part of a method, as manifests/published/tables.yaml lists
them.
"""

from types import SimpleNamespace

from pydantic import BaseModel, ConfigDict

from pipeline.foundation.settings import kinds
from pipeline.judge.systems.scores.made import Member
from pipeline.judge.tables.published import PublishedRow
from pipeline.judge.tables.table import MISSING
from pipeline.run.report import names
from pipeline.run.report.measured import MeasuredSystem
from pipeline.run.report.result_rows import RowHeader
from pipeline.run.report.retrieval_table import LISTED, RetrievalTable


class Ablation(BaseModel):
    """Which systems one of the tables shows, and their labels."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    columns: tuple[str, ...]  # The columns of the published file that hold the labels
    # Recipe -> its labels; RECIPE/LETTER for a recipe on that visual feature alone.
    recipes: dict[str, tuple[str, ...]]
    # Cell of these columns -> its label, if the label is a different text.
    shown: dict[str, str] = {}
    # Whether the recipes called vse2ad-POOLING have rows, labelled by their poolings' titles.
    poolings: bool = False
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
        is_shown = self.by_feature or (origin.visual, origin.text) == ("R", "bigru")
        if len(origin.visual) > 1 or not is_shown:
            return None
        values = self.labels(origin.recipe, origin.visual)
        if not values:
            return None
        parameters = _parameters(system.members[0]) if self.parameters else ""
        return self._header(origin.visual, origin.text, values, parameters)

    def labels(self, recipe: str, visual: str = "R") -> tuple[str, ...] | None:
        """The labels of a recipe; None for a recipe that varies something else."""
        paper, pooling = names.pooled(recipe)
        if self.poolings and paper == "vse2ad":
            return (kinds.TABLES["poolings"].title(pooling),)
        return self.recipes.get(f"{recipe}/{visual}") or self.recipes.get(recipe)

    def _header(self, visual: str, text: str, values: tuple[str, ...], counted: str) -> RowHeader:
        if not self.by_feature:
            return RowHeader(values, identity=values)
        features = f"{names.features(visual)} + {names.encoder(text)}"
        named = (features, *values)
        labels = (*named, counted) if self.parameters else named
        return RowHeader(labels, group=features, identity=named)


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
    name: RetrievalTable.listed(name, measured=varied.measured, published=varied.published)
    for name, varied in ABLATIONS.items()
}
TABLES = SimpleNamespace(**_TABLES)

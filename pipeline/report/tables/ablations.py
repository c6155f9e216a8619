"""The papers' tables that vary one part of a method, as manifests/published/ablations.yaml lists them."""

from types import SimpleNamespace

from pydantic import BaseModel, ConfigDict

from pipeline.files.parsing import from_yaml
from pipeline.heads import pooling
from pipeline.provenance.head_record import HeadRecord
from pipeline.report import emphasis, names, published
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable, TableColumns
from pipeline.report.table import MISSING, Note


class Ablation(BaseModel):
    """One of the tables.

    Attributes:
        caption: What it shows; `{data}` stands for the data.
        data: The data of the paper's table, in words.
        headings: The headings of the label columns that say what is varied.
        columns: The columns of the published file that hold these labels.
        recipes: Recipe -> its labels; RECIPE/LETTER for a recipe on that visual feature alone.
        shown: Cell of these columns -> its label, where that is another.
        poolings: Whether the recipes called vse2ad-POOLING have rows, which their poolings' titles label.
        by_feature: Whether all features and text encoders are shown, which the first label names; else regions and
            BiGRU alone.
        text: The text encoder of published rows that name none.
        parameters: Whether the parameters of the image pooling are shown.
        notes: Notes on the published rows.
        blocks, directions, metrics, rsum, ratio, labels_above: See `TableColumns`.
        legend, base: See `RetrievalTable`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    caption: str
    data: str
    headings: tuple[str, ...]
    columns: tuple[str, ...]
    recipes: dict[str, tuple[str, ...]]
    shown: dict[str, str] = {}
    poolings: bool = False
    by_feature: bool = False
    text: str = ""
    parameters: bool = False
    notes: tuple[str, ...] = ()
    blocks: tuple[tuple[str, str], ...]
    directions: tuple[tuple[str, str], ...]
    metrics: tuple[str, ...] = ("r1", "r5")
    rsum: bool = True
    ratio: str = ""
    labels_above: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    base: str = ""

    def published(self, row: PublishedRow) -> RowHeader:
        """The header of a published row."""
        values = tuple(self.shown.get(row[column], row[column]) for column in self.columns)
        return self._header(row.cells.get("visual_feature", ""), row.cells.get("text_encoder") or self.text, values,
                            row["params"] if self.parameters else "")

    def measured(self, system: MeasuredSystem) -> RowHeader | None:
        """The header of a measured system of one feature whose recipe has labels."""
        origin = system.origin
        if len(origin.visual) > 1 or not (self.by_feature or (origin.visual, origin.text) == ("R", "bigru")):
            return None
        values = self.labels(origin.recipe, origin.visual)
        counted = _parameters(system.members[0]) if self.parameters and values else ""
        return self._header(origin.visual, origin.text, values, counted) if values else None

    def labels(self, recipe: str, visual: str = "R") -> tuple[str, ...] | None:
        """The labels of a recipe; None for a recipe that varies something else."""
        base, _, name = recipe.partition("-")
        if self.poolings and base == "vse2ad" and name in pooling.POOLINGS:
            return (pooling.POOLINGS[name].title,)
        return self.recipes.get(f"{recipe}/{visual}") or self.recipes.get(recipe)

    def _header(self, visual: str, text: str, values: tuple[str, ...], counted: str) -> RowHeader:
        if not self.by_feature:
            return RowHeader(values, identity=values)
        features = f"{names.features(visual)} + {names.encoder(text)}"
        return RowHeader((features, *values, *[counted] * self.parameters), group=features,
                         identity=(features, *values))


def _parameters(member: HeadRecord) -> str:
    """The parameters of a head's image pooling as the paper prints them: 0 or 6.3M."""
    how, dimension = member.settings.get("image_pooling"), member.settings.get("dimension")
    if not how or not dimension:
        return MISSING
    options = {key: value for key, value in how.items() if key != "name"}
    module = pooling.build(how["name"], int(dimension), **options)
    count = sum(parameter.numel() for parameter in module.parameters())
    return f"{count / 1e6:.1f}M" if count else "0"


LISTED = from_yaml(published.text("ablations.yaml"))
ABLATIONS = {name: Ablation(**LISTED["papers"][name.partition("_table")[0]] | said)
             for name, said in LISTED["tables"].items()}


def _table(name: str, a: Ablation) -> RetrievalTable:
    labels = (*["Features"] * a.by_feature, *a.headings, *["#Param"] * a.parameters)
    return RetrievalTable(
        name=name, caption=a.caption, data=a.data, legend=a.legend, base=a.base, notes=tuple(map(Note, a.notes)),
        columns=TableColumns(labels, a.blocks, a.directions, a.metrics, a.rsum, a.ratio, a.labels_above),
        measured=a.measured, published=a.published,
        emphasis=emphasis.best_of_groups if a.by_feature else emphasis.best_of_columns)


TABLES = SimpleNamespace(**{name: _table(name, ablation) for name, ablation in ABLATIONS.items()})

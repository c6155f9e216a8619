"""VSE∞ Tables 1, 6, 7, 8, 12 and 13: one part of the method varied, COCO 5-fold 1K. An entry in `ABLATIONS` each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pipeline.heads import pooling
from pipeline.provenance.head_record import HeadRecord
from pipeline.report import emphasis, names
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.table import MISSING
from pipeline.report.table_columns import TableColumns
from pipeline.report.tables.vse_infty_tables_2_9_10 import DIRECTIONS

BEST = "Best Pooling Function"
"""Section 3.1: max pooling of regions, 20-max of grids."""
INFERRED = (
    "BiGRU is inferred: the paper does not name the text encoder of its Table 1, whose AvgPool on regions is VSE++ "
    "with BiGRU in its Table 9."
)


@dataclass(frozen=True)
class Ablation:
    """One of the tables.

    Attributes:
        caption: What is varied.
        headings: The headings of the label columns that say how.
        columns: The columns of the published file that hold these labels.
        recipes: Recipe -> its labels; RECIPE/LETTER for a recipe on that visual feature alone.
        text: The text encoder of published rows that name none.
        metrics: The metrics of each direction that the paper prints.
        directions: The directions in the paper's order.
        parameters: Whether the parameters of the image pooling are shown.
    """

    caption: str
    headings: tuple[str, ...]
    columns: tuple[str, ...]
    recipes: Mapping[str, tuple[str, ...]]
    text: str = ""
    metrics: tuple[str, ...] = ("r1", "r5")
    directions: tuple[tuple[str, str], ...] = DIRECTIONS
    parameters: bool = False


ABLATIONS = {
    "vse_infty_table1": Ablation(
        "Aggregators of image items in VSE++", ("Aggregator",), ("aggregator",),
        {"vse_pp": ("AvgPool",), "vse_pp-seq2seq": ("Seq2Seq",), "vse_pp-selfattn": ("SelfAttn",),
         "vse_pp-gcn_mean": ("GCN+AvgPool",), "vse_pp-gcn_seq2seq": ("GCN+Seq2Seq",),
         "vse_pp-max/R": (BEST,), "vse_pp-max": ("MaxPool",),
         "vse_pp-kmax20/G": (BEST,), "vse_pp-kmax20": ("20-MaxPool",)}, text="bigru", metrics=("r1",),
        directions=DIRECTIONS[::-1], parameters=True),
    "vse_infty_table6": Ablation(
        "Aggregators of image items and of tokens", ("Visual Aggr.", "Text Aggr."), ("visual_aggr", "text_aggr"),
        {"vse_infty-mean_cls": ("AvgPool", "CLS"), "vse_infty-mean_gpo": ("AvgPool", "GPO"),
         "vse_infty-gpo_cls": ("GPO", "CLS"), "vse_infty": ("GPO", "GPO")}),
    "vse_infty_table7": Ablation(
        "Size augmentation of neither side, of images alone, and of both", ("Size Aug.",), ("size_aug",),
        {"vse_infty-noaug": ("none",), "vse_infty-visualaug": ("visual",), "vse_infty": ("visual+text",)}),
    "vse_infty_table8": Ablation(
        "The sequence model of GPO", ("Seq. Model",), ("seq_model",),
        {"vse_infty-transformer": ("Transformer",), "vse_infty": ("BiGRU",)}),
    "vse_infty_table12": Ablation(
        "GPO with coefficients for each dimension, and with those for all", ("Per-dim?",), ("per_dim",),
        {"vse_infty-perdim": ("✓",), "vse_infty": ("✗",)}),
    "vse_infty_table13": Ablation(
        "GPO with coefficients that depend on the features, and with those of positions alone", ("Feature to g?",),
        ("feature_to_g",),
        {"vse_infty-datadep": ("✓",), "vse_infty": ("✗",)}),
}
MARKS = {"1": "✓", "0": "✗"}


def _table(name: str, ablation: Ablation) -> RetrievalTable:
    labels = ("Features", *ablation.headings, *["#Param"] * ablation.parameters)
    columns = TableColumns(labels, (("coco_1k_5fold", "COCO 5-fold 1K Test"),), ablation.directions,
                           metrics=ablation.metrics, rsum=False)
    caption = f"{ablation.caption} on {{data}} in percent, after Table {name.removeprefix('vse_infty_table')} of VSE∞."
    return RetrievalTable(name, caption, columns, partial(_measured, ablation), partial(_published, ablation),
                          "COCO 5-fold 1K", emphasis=emphasis.best_of_groups, note=INFERRED if ablation.text else "")


def _published(ablation: Ablation, row: PublishedRow) -> RowHeader:
    values = tuple(MARKS.get(row[column], row[column]) for column in ablation.columns)
    return _header(row["visual_feature"], row["text_encoder"] or ablation.text, values,
                   [row["params"]] if ablation.parameters else [])


def _measured(ablation: Ablation, system: MeasuredSystem) -> RowHeader | None:
    origin, recipes = system.origin, ablation.recipes
    if len(origin.visual) > 1:  # an ensemble
        return None
    values = recipes.get(f"{origin.recipe}/{origin.visual}") or recipes.get(origin.recipe)
    counted = [_parameters(system.members[0])] if ablation.parameters and values else []
    return _header(origin.visual, origin.text, values, counted) if values else None


def _header(visual: str, text: str, values: tuple[str, ...], further: Sequence[str]) -> RowHeader:
    """The header of a row; further: labels that do not tell one system from another."""
    features = f"{names.features(visual)} + {names.encoder(text)}"
    return RowHeader((features, *values, *further), group=features, identity=(features, *values))


def _parameters(member: HeadRecord) -> str:
    """The parameters of a head's image pooling as the paper prints them: 0 or 6.3M."""
    how, dimension = member.settings.get("image_pooling"), member.settings.get("dimension")
    if not how or not dimension:
        return MISSING
    options = {key: value for key, value in how.items() if key != "name"}
    module = pooling.build(how["name"], int(dimension), **options)
    count = sum(parameter.numel() for parameter in module.parameters())
    return f"{count / 1e6:.1f}M" if count else "0"


TABLE1, TABLE6, TABLE7, TABLE8, TABLE12, TABLE13 = (
    _table(f"vse_infty_table{number}", ABLATIONS[f"vse_infty_table{number}"]) for number in (1, 6, 7, 8, 12, 13))

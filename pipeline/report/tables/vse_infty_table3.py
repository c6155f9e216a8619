"""VSE∞ Table 3: against vision-language BERTs, COCO 5K."""

from __future__ import annotations

from pipeline.report import emphasis, names, networks, published
from pipeline.report.compose import Draft, compose
from pipeline.report.entries import Place, published_entries
from pipeline.report.layout import Layout
from pipeline.report.measured import Measured, Results
from pipeline.report.published import PublishedRow
from pipeline.report.table import Table
from pipeline.report.tables.vse_infty_main import DIRECTIONS

LAYOUT = Layout(
    ("Method", "Pretrain", "CNN"), (("coco_5k", "COCO 5K Test"),), DIRECTIONS, ranks=(1, 5), rsum=False
)
CAPTION = (
    "Embeddings with BERT against vision-language BERTs on COCO 5K in percent, after Table 3 of VSE∞. "
    "Pretrain: on pairs of images and text beyond COCO. R region, G grid, P patch features; *: two models"
    " averaged. Bold is the best of a column; published and measured rows do not compete."
)


def build(results: Results, delta: bool) -> Table:
    """Published rows, and every measured system with BERT that is no variant of a paper's recipe."""
    rows, doubts = published_entries(published.load("vse_infty_table3"), _published, LAYOUT.shown())
    draft = Draft("vse_infty_table3", CAPTION, LAYOUT, rows, doubts, emphasis.best_of_columns, _measured)
    return compose(draft, results.systems, delta)


def _published(row: PublishedRow) -> Place:
    if row["pretrain"] == "1":
        return Place((row["method"], "✓", row["backbone"]), "Vision-language BERTs")
    method = f"{row['method']} ({'+'.join(row['visual_feature'])})" + "*" * (row["ensemble"] == "1")
    return Place((method, "✗", row["backbone"]), "Embeddings", system=(method, row["backbone"]))


def _measured(system: Measured) -> Place | None:
    origin = system.origin
    if origin.text != "bert" or names.is_variant(origin.recipe):
        return None
    named = (names.method(origin.recipe, origin.visual), names.published_method(origin.recipe))
    method, published = (f"{name} ({'+'.join(origin.visual)})" for name in named)
    network = networks.backbone(system)
    return Place((method, "✗", network), "Embeddings", system=(published, network))

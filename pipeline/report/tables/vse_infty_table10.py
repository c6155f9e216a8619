"""VSE∞ Table 10 (appendix B.2): visual-semantic embeddings on COCO 5K."""

from __future__ import annotations

from pipeline.report import emphasis, published
from pipeline.report.compose import Draft, compose
from pipeline.report.entries import published_entries
from pipeline.report.layout import Layout
from pipeline.report.measured import Results
from pipeline.report.table import Table
from pipeline.report.tables.vse_infty_main import BOLD, DIRECTIONS, LABELS, measured_place, published_place

LAYOUT = Layout(LABELS, (("coco_5k", "COCO 5K Test"),), DIRECTIONS)
CAPTION = (
    "Visual-semantic embeddings by image network and text encoder on COCO 5K in percent, after Table 10 "
    f"of VSE∞. {BOLD}"
)


def build(results: Results, delta: bool) -> Table:
    """Published rows, and every measured system that is no variant of a paper's recipe."""
    rows, doubts = published_entries(published.load("vse_infty_table10"), published_place, LAYOUT.shown())
    draft = Draft("vse_infty_table10", CAPTION, LAYOUT, rows, doubts, emphasis.two_best_sums, measured_place)
    return compose(draft, results.systems, delta)

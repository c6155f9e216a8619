"""VSE∞ Table 2: visual-semantic embeddings on COCO 1K and Flickr30K."""

from __future__ import annotations

from pipeline.report import emphasis, published
from pipeline.report.compose import Draft, compose
from pipeline.report.entries import published_entries
from pipeline.report.layout import Layout
from pipeline.report.measured import Results
from pipeline.report.table import Table
from pipeline.report.tables.vse_infty_main import BOLD, DIRECTIONS, LABELS, measured_place, published_place

LAYOUT = Layout(
    LABELS, (("coco_1k_5fold", "COCO 5-fold 1K Test"), ("f30k_1k", "Flickr30K 1K Test")), DIRECTIONS
)
CAPTION = (
    "Visual-semantic embeddings by image network and text encoder on COCO and Flickr30K in percent, after"
    f" Table 2 of VSE∞. {BOLD}"
)


def build(results: Results, delta: bool) -> Table:
    """Published rows, and every measured system that is no variant of a paper's recipe."""
    rows, doubts = published_entries(published.load("vse_infty_table2"), published_place, LAYOUT.shown())
    draft = Draft("vse_infty_table2", CAPTION, LAYOUT, rows, doubts, emphasis.two_best_sums, measured_place)
    return compose(draft, results.systems, delta)

"""VSE+2AD Table 1: the main results, BiGRU and BERT, MS-COCO 1K and Flickr30K."""

from __future__ import annotations

from pipeline.report import emphasis, names, published
from pipeline.report.compose import Draft, compose
from pipeline.report.entries import Place, published_entries
from pipeline.report.layout import Layout
from pipeline.report.measured import Measured, Results
from pipeline.report.published import PublishedRow
from pipeline.report.table import Table

LAYOUT = Layout(
    labels=("VF", "Method"),
    blocks=(("coco_1k_5fold", "MS-COCO 5-fold 1K Test"), ("f30k_1k", "Flickr30K 1K Test")),
    directions=(("t2i", "Image Retrieval"), ("i2t", "Caption Retrieval")),
)
CAPTION = (
    "Retrieval on MS-COCO and Flickr30K in percent, after Table 1 of VSE+2AD. VF: visual features, region"
    " (R), grid (G), patch (P); RG and RGP average the similarities of separately trained models. Bold is"
    " the best of its text encoder and visual features, in black for R, blue for RG, red for RGP; "
    "published and measured rows do not compete."
)


def build(results: Results, delta: bool) -> Table:
    """Published rows, and every measured system with R, RG or RGP that is no variant of a paper's recipe."""
    rows, doubts = published_entries(published.load("vse2ad_table1"), _published, LAYOUT.shown())
    draft = Draft("vse2ad_table1", CAPTION, LAYOUT, rows, doubts, emphasis.best_of_groups, _measured)
    return compose(draft, results.systems, delta)


def _published(row: PublishedRow) -> Place:
    return _place(row["visual_feature"], row["method"], row["method"], row["text_encoder"])


def _measured(system: Measured) -> Place | None:
    origin = system.origin
    if origin.visual not in emphasis.GROUP_COLOURS or names.is_variant(origin.recipe):
        return None
    method, published = names.method(origin.recipe, origin.visual), names.published_method(origin.recipe)
    return _place(origin.visual, method, published, origin.text)


def _place(visual: str, method: str, published: str, text: str) -> Place:
    section = f"Text Encoder: {names.encoder(text)}"
    return Place((visual, method), section, visual, system=(visual, published, text))

"""VSE+2AD Table 1: the main results, BiGRU and BERT, MS-COCO 1K and Flickr30K."""

from __future__ import annotations

from pipeline.report import emphasis, names
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.table_columns import TableColumns


def _published(row: PublishedRow) -> RowHeader:
    return _header(row["visual_feature"], row["method"], row["method"], row["text_encoder"])


def _measured(system: MeasuredSystem) -> RowHeader | None:
    """Every system with R, RG or RGP that is no variant of a paper's recipe."""
    origin = system.origin
    if origin.visual not in emphasis.GROUP_COLOURS or names.is_variant(origin.recipe):
        return None
    method, published = names.method(origin.recipe, origin.visual), names.published_method(origin.recipe)
    return _header(origin.visual, method, published, origin.text)


def _header(visual: str, method: str, published: str, text: str) -> RowHeader:
    section = f"Text Encoder: {names.encoder(text)}"
    return RowHeader((visual, method), section, visual, identity=(visual, published, text))


TABLE = RetrievalTable(
    "vse2ad_table1",
    "Retrieval on {data} in percent, after Table 1 of VSE+2AD.",
    TableColumns(
        labels=("VF", "Method"),
        blocks=(("coco_1k_5fold", "MS-COCO 5-fold 1K Test"), ("f30k_1k", "Flickr30K 1K Test")),
        directions=(("t2i", "Image Retrieval"), ("i2t", "Caption Retrieval")),
    ),
    _measured, _published, "MS-COCO and Flickr30K",
    legend=(("VF", "VF: visual features, region (R), grid (G), patch (P)."),
            ("RG", "RG, RGP: mean of the similarities of separately trained models.")),
    emphasis=emphasis.best_of_groups,
    zero_shot=True,
)

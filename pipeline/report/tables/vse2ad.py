"""The tables of VSE+2AD of whole systems, 1 and 2."""

from pipeline.report import emphasis, names
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable, TableColumns

DIRECTIONS = (("t2i", "Image Retrieval"), ("i2t", "Caption Retrieval"))

def _published_main(row: PublishedRow) -> RowHeader:
    return _main(row["visual_feature"], row["method"], row["method"], row["text_encoder"])


def _measured_main(system: MeasuredSystem) -> RowHeader | None:
    """Every system with R, RG or RGP that is no variant of a paper's recipe."""
    origin = system.origin
    if origin.visual not in emphasis.GROUP_COLOURS or names.is_variant(origin.recipe):
        return None
    method, published = names.method(origin.recipe, origin.visual), names.published_method(origin.recipe)
    return _main(origin.visual, method, published, origin.text)


def _main(visual: str, method: str, published: str, text: str) -> RowHeader:
    section = f"Text Encoder: {names.encoder(text)}"
    return RowHeader((visual, method), section, visual, identity=(visual, published, text))


def _measured_all_features(system: MeasuredSystem) -> RowHeader | None:
    """Every system with RGP that is no variant of a paper's recipe."""
    origin = system.origin
    if origin.visual != "RGP" or names.is_variant(origin.recipe):
        return None
    method = names.method(origin.recipe)
    if origin.text == "bert":
        return RowHeader((method,), identity=names.published_method(origin.recipe))
    return RowHeader((f"{method} ({names.encoder(origin.text)})",))


TABLE1 = RetrievalTable(
    name="vse2ad_table1",
    caption="Retrieval on {data} in percent, after Table 1 of VSE+2AD.",
    columns=TableColumns(
        labels=("VF", "Method"),
        blocks=(("coco_1k_5fold", "MS-COCO 5-fold 1K Test"), ("f30k_1k", "Flickr30K 1K Test")),
        directions=DIRECTIONS,
    ),
    measured=_measured_main, published=_published_main, data="MS-COCO and Flickr30K",
    legend=(("VF", "VF: visual features, region (R), grid (G), patch (P)."),
            ("RG", "RG, RGP: mean of the similarities of separately trained models.")),
    emphasis=emphasis.best_of_groups,
    zero_shot=True,
)
# Measured rows have no #OIPs: the paper's 1.0× is ALIGN, which is not timed here.
TABLE2 = RetrievalTable(
    name="vse2ad_table2",
    caption="Against pre-trained vision-language models on {data} in percent, after Table 2 of VSE+2AD. VSE+2AD: "
    "ensemble of region, grid and patch features.",
    columns=TableColumns(("Method",), (("coco_5k", "COCO 5K Test"),), DIRECTIONS, metrics=("r1", "r5"), ratio="#OIPs"),
    measured=_measured_all_features, published=lambda row: RowHeader((row["method"],), identity=row["method"]),
    data="COCO 5K", legend=(("RSUM", "RSUM: over R@1, R@5 and R@10 of both directions."),
                            ("#OIPs", "#OIPs: operations a second as a multiple of ALIGN's.")),
    zero_shot=True,
)

"""The tables of VSE+2AD: 1 and 2 of whole systems; 3, 4, A.1-1 and C-2 of one part of the method varied."""

from collections.abc import Callable
from functools import partial

from pipeline.heads.pooling import POOLINGS
from pipeline.report import emphasis, names
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable, TableColumns

DIRECTIONS = (("t2i", "Image Retrieval"), ("i2t", "Caption Retrieval"))
COCO_5K = (("coco_5k", "COCO 5K Test"),)
RSUM_OF_ALL = ("RSUM", "RSUM: over R@1, R@5 and R@10 of both directions.")
"""For tables that do not print R@10."""
PARTS = {
    "vse2ad": ("VSE+2AD",),
    "vse2ad-notok": ("−tok AdPool",),
    "vse2ad-noemb": ("−emb AdPool",),
    "vse2ad-noadpool": ("−AdPool",),
    "vse2ad-noadopt": ("−AdOpt",),
}
"""Table 3: recipe -> its label."""
AGGREGATORS = {"vse2ad": ("AdPool",), "vse2ad-manual": ("Manual",), "vse2ad-noadpool": ("mean",)}
"""Tables 4 and A.1-1: recipe -> its label, of those that are not called vse2ad-POOLING."""
WEIGHTS = {
    "vse2ad-w25": ("0.25", "0.75"),
    "vse2ad-w50": ("0.5", "0.5"),
    "vse2ad-w75": ("0.75", "0.25"),
    "vse2ad-random": ("random", "random"),
    "vse2ad": ("AdPool", "AdPool"),
}
"""Table C-2: recipe -> its labels."""


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


def aggregator(recipe: str) -> tuple[str, ...] | None:
    """The label of a recipe's aggregator; None for a recipe that varies something else."""
    base, _, name = recipe.partition("-")
    if base == "vse2ad" and name in POOLINGS:
        return (POOLINGS[name].title,)
    return AGGREGATORS.get(recipe)


def _measured(labels_of: Callable[[str], tuple[str, ...] | None], system: MeasuredSystem) -> RowHeader | None:
    """Systems with region features and BiGRU whose recipe has labels."""
    if (system.origin.visual, system.origin.text) != ("R", "bigru"):
        return None
    labels = labels_of(system.origin.recipe)
    return None if labels is None else RowHeader(labels, identity=labels)


def _published(columns: tuple[str, ...], row: PublishedRow) -> RowHeader:
    """Rows labelled by these columns of their file."""
    labels = tuple(row[column] for column in columns)
    return RowHeader(labels, identity=labels)


def _published_part(row: PublishedRow) -> RowHeader:
    labels = ("VSE+2AD" if row["ablation"] == "full" else row["ablation"].replace("-", "−", 1),)
    return RowHeader(labels, identity=labels)


def _varied(number: str, caption: str, columns: TableColumns, labels_of: Callable[[str], tuple[str, ...] | None],
            published: Callable[[PublishedRow], RowHeader], legend: tuple[tuple[str, str], ...], base: str = ""
            ) -> RetrievalTable:
    """A table on COCO 5K with region features and BiGRU."""
    return RetrievalTable(
        name=f"vse2ad_table{number.replace('.1-', '').replace('-', '')}", data="COCO 5K", columns=columns,
        caption=f"{caption} on {{data}} in percent, region features and BiGRU, after Table {number} of VSE+2AD.",
        measured=partial(_measured, labels_of), published=published, legend=legend, base=base)


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
    columns=TableColumns(("Method",), COCO_5K, DIRECTIONS, metrics=("r1", "r5"), ratio="#OIPs"),
    measured=_measured_all_features, published=lambda row: RowHeader((row["method"],), identity=row["method"]),
    data="COCO 5K", legend=(RSUM_OF_ALL, ("#OIPs", "#OIPs: operations a second as a multiple of ALIGN's.")),
    zero_shot=True,
)
TABLE3 = _varied(
    "3", "Parts of VSE+2AD", TableColumns(("Method",), COCO_5K, DIRECTIONS), PARTS.get, _published_part,
    (("−tok", "−tok, −emb: without token-level or embedding-level pooling."), ("−AdPool", "−AdPool: mean pooling."),
     ("−AdOpt", "−AdOpt: hardest-negative triplet loss.")),
)
TABLE4 = _varied(
    "4", "Aggregators in the place of AdPool",
    TableColumns(("Aggregator",), COCO_5K, DIRECTIONS, metrics=("r1", "r5"), ratio="#OIPs"),
    aggregator, partial(_published, ("aggregator",)),
    (RSUM_OF_ALL, ("#OIPs", "#OIPs: items a second as a multiple of GCN's.")), base="vse2ad-gcn",
)
TABLEA1 = _varied(
    "A.1-1", "Learned aggregators and poolings chosen by hand",
    TableColumns(("Aggregator",), COCO_5K, DIRECTIONS, metrics=("r1", "r5")),
    lambda recipe: None if recipe == "vse2ad" else aggregator(recipe), partial(_published, ("aggregator",)),
    (("Manual", "Manual: the mean of the 5 largest for images, the mean for text."), RSUM_OF_ALL),
)
TABLEC2 = _varied(
    "C-2", "Weights of token-level (obj) and embedding-level (emb) pooling",
    TableColumns(("obj", "emb"), COCO_5K, DIRECTIONS, metrics=("r1", "r5"), labels_above="Weights"),
    WEIGHTS.get, partial(_published, ("weight_obj", "weight_emb")),
    (("AdPool", "AdPool: learned weights."), RSUM_OF_ALL),
)

"""VSE+2AD Tables 3, 4, A.1-1 (appendix A.1, Table 1) and C-2 (appendix C, Table 2): one part of the method varied.

All four are on COCO 5K with region features and BiGRU.
"""

from __future__ import annotations

from collections.abc import Callable

from pipeline.heads.pooling import POOLINGS
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.table_columns import TableColumns

BLOCKS = (("coco_5k", "COCO 5K Test"),)
DIRECTIONS = (("t2i", "Image Retrieval"), ("i2t", "Caption Retrieval"))
DATA = "COCO 5K"
SETTING = "on {data} in percent, region features and BiGRU, after Table"
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


def aggregator(recipe: str) -> tuple[str, ...] | None:
    """The label of a recipe's aggregator.

    Args:
        recipe: A recipe's name.

    Returns:
        For vse2ad-NAME the title of the pooling NAME; None for a recipe that varies something else.
    """
    base, _, name = recipe.partition("-")
    if base == "vse2ad" and name in POOLINGS:
        return (POOLINGS[name].title,)
    return AGGREGATORS.get(recipe)


def _measured(labels_of: Callable[[str], tuple[str, ...] | None]) -> Callable[[MeasuredSystem], RowHeader | None]:
    """Systems with region features and BiGRU whose recipe has labels."""

    def header(system: MeasuredSystem) -> RowHeader | None:
        if (system.origin.visual, system.origin.text) != ("R", "bigru"):
            return None
        labels = labels_of(system.origin.recipe)
        return None if labels is None else RowHeader(labels, identity=labels)

    return header


def _published(*columns: str) -> Callable[[PublishedRow], RowHeader]:
    """Rows labelled by these columns of their file."""

    def header(row: PublishedRow) -> RowHeader:
        labels = tuple(row[column] for column in columns)
        return RowHeader(labels, identity=labels)

    return header


def _published_part(row: PublishedRow) -> RowHeader:
    labels = ("VSE+2AD" if row["ablation"] == "full" else row["ablation"].replace("-", "−", 1),)
    return RowHeader(labels, identity=labels)


TABLE3 = RetrievalTable(
    "vse2ad_table3", f"Parts of VSE+2AD {SETTING} 3 of VSE+2AD.", TableColumns(("Method",), BLOCKS, DIRECTIONS),
    _measured(PARTS.get), _published_part, DATA,
    (("−tok", "−tok, −emb: without token-level or embedding-level pooling."), ("−AdPool", "−AdPool: mean pooling."),
     ("−AdOpt", "−AdOpt: hardest-negative triplet loss.")),
)
TABLE4 = RetrievalTable(
    "vse2ad_table4", f"Aggregators in the place of AdPool {SETTING} 4 of VSE+2AD.",
    TableColumns(("Aggregator",), BLOCKS, DIRECTIONS, metrics=("r1", "r5"), ratio="#OIPs"),
    _measured(aggregator), _published("aggregator"), DATA,
    (RSUM_OF_ALL, ("#OIPs", "#OIPs: items a second as a multiple of GCN's.")), base="vse2ad-gcn",
)
TABLE_A1 = RetrievalTable(
    "vse2ad_tableA1", f"Learned aggregators and poolings chosen by hand {SETTING} A.1-1 of VSE+2AD.",
    TableColumns(("Aggregator",), BLOCKS, DIRECTIONS, metrics=("r1", "r5")),
    _measured(lambda recipe: None if recipe == "vse2ad" else aggregator(recipe)), _published("aggregator"), DATA,
    (("Manual", "Manual: the mean of the 5 largest for images, the mean for text."), RSUM_OF_ALL),
)
TABLE_C2 = RetrievalTable(
    "vse2ad_tableC2", f"Weights of token-level (obj) and embedding-level (emb) pooling {SETTING} C-2 of VSE+2AD.",
    TableColumns(("obj", "emb"), BLOCKS, DIRECTIONS, metrics=("r1", "r5"), labels_above="Weights"),
    _measured(WEIGHTS.get), _published("weight_obj", "weight_emb"), DATA,
    (("AdPool", "AdPool: learned weights."), RSUM_OF_ALL),
)

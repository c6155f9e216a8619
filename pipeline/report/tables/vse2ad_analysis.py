"""What VSE+2AD's tables on COCO 5K have in common: their headings, the systems they analyse, the aggregators'
names."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.report.entries import Place
from pipeline.report.measured import Measured

BLOCKS = (("coco_5k", "COCO 5K Test"),)
DIRECTIONS = (("t2i", "Image Retrieval"), ("i2t", "Caption Retrieval"))
SETTING = (
    "COCO 5K in percent, region features and BiGRU. "
    "Bold is the best of a column; published and measured rows do not compete."
)
AGGREGATORS = {
    "vse2ad": "AdPool",
    "vse2ad-lip": "LIP",
    "vse2ad-seq2seq": "Seq2Seq",
    "vse2ad-gcn": "GCN",
    "vse2ad-selfattn": "SelfAttn",
    "vse2ad-adapool": "AdaPool",
    "vse2ad-softpool": "SoftPool",
    "vse2ad-gpo": "GPO",
    "vse2ad-manual": "Manual",
    "vse2ad-noadpool": "mean",
}
"""Recipe -> its aggregator as the papers name it."""


def region_bigru(labels: Callable[[str], tuple[str, ...] | None]) -> Callable[[Measured], Place | None]:
    """Where a measured system stands: under `labels(recipe)` if it has region features alone and a BiGRU."""

    def place(system: Measured) -> Place | None:
        if (system.origin.visual, system.origin.text) != ("R", "bigru"):
            return None
        found = labels(system.origin.recipe)
        return None if found is None else Place(found, system=found)

    return place


def aggregator(recipe: str) -> tuple[str] | None:
    """The paper's name for a recipe's aggregator; None for a recipe that departs in something else."""
    return (AGGREGATORS[recipe],) if recipe in AGGREGATORS else None

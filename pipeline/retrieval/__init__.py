"""Image-text retrieval: arrays in, numbers out. Ranks, recalls, protocols, ensembles and their certainty."""

from typing import TYPE_CHECKING

from pipeline import lazy

if TYPE_CHECKING:
    from pipeline.retrieval.embeddings import Embeddings
    from pipeline.retrieval.fusion import FUSIONS, Member, align, fuse, in_order_of, shares
    from pipeline.retrieval.holm import holm
    from pipeline.retrieval.intervals import Interval, interval, intervals
    from pipeline.retrieval.metrics import DirectionMetrics, Metrics, evaluate, measure
    from pipeline.retrieval.per_image import STATISTICS
    from pipeline.retrieval.protocols import PROTOCOLS, Protocol, consecutive_captions
    from pipeline.retrieval.ranking import rank
    from pipeline.retrieval.ranks import QueryRanks, Ranks, Ties
    from pipeline.retrieval.relevance import Positives, Relevance
    from pipeline.retrieval.seeds import Spread, over_seeds
    from pipeline.retrieval.significance import Comparison, compare
    from pipeline.retrieval.similarity import PerDirection, Selection, Similarity, as_similarity, select

__all__ = [
    "FUSIONS",
    "PROTOCOLS",
    "STATISTICS",
    "Comparison",
    "DirectionMetrics",
    "Embeddings",
    "Interval",
    "Member",
    "Metrics",
    "PerDirection",
    "Positives",
    "Protocol",
    "QueryRanks",
    "Ranks",
    "Relevance",
    "Selection",
    "Similarity",
    "Spread",
    "Ties",
    "align",
    "as_similarity",
    "compare",
    "consecutive_captions",
    "evaluate",
    "fuse",
    "holm",
    "in_order_of",
    "interval",
    "intervals",
    "measure",
    "over_seeds",
    "rank",
    "select",
    "shares",
]

lazy.offer(__name__)

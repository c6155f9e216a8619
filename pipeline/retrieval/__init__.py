"""Image-text retrieval: similarities and relevance in, ranks and recalls out, by protocol."""

from typing import TYPE_CHECKING

from pipeline import lazy

if TYPE_CHECKING:
    from pipeline.retrieval.embeddings import Embeddings
    from pipeline.retrieval.metrics import DirectionMetrics, Metrics, evaluate, measure
    from pipeline.retrieval.protocols import PROTOCOLS, Protocol, consecutive_captions
    from pipeline.retrieval.ranking import rank
    from pipeline.retrieval.ranks import QueryRanks, Ranks, Ties
    from pipeline.retrieval.relevance import Positives, Relevance
    from pipeline.retrieval.similarity import PerDirection, Selection, Similarity, as_similarity, select

__all__ = [
    "PROTOCOLS",
    "DirectionMetrics",
    "Embeddings",
    "Metrics",
    "PerDirection",
    "Positives",
    "Protocol",
    "QueryRanks",
    "Ranks",
    "Relevance",
    "Selection",
    "Similarity",
    "Ties",
    "as_similarity",
    "consecutive_captions",
    "evaluate",
    "measure",
    "rank",
    "select",
]

lazy.offer(__name__)

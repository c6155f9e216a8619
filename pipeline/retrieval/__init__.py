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

lazy.offer(__name__)

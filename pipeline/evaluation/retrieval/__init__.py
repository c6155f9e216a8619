"""Image-text retrieval: similarities and relevance in, ranks out, by protocol."""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.evaluation.retrieval.blocks import Cells, Direction, Floats, Ids, Index, Marks, Singles
    from pipeline.evaluation.retrieval.collection import Collection, Side, rows_of
    from pipeline.evaluation.retrieval.embeddings import Embeddings
    from pipeline.evaluation.retrieval.protocols import PROTOCOLS, Protocol, consecutive_captions, protocol
    from pipeline.evaluation.retrieval.ranking import rank
    from pipeline.evaluation.retrieval.ranks import QueryRanks, Ranks, Ties
    from pipeline.evaluation.retrieval.relevance import Positives, Relevance
    from pipeline.evaluation.retrieval.similarity import PerDirection, Scores, Similarity, as_similarity, select
    from pipeline.evaluation.retrieval.workers import Progress

lazy.offer(__name__)

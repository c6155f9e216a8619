"""Image-text retrieval: similarities and relevance in, ranks out, by protocol."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    import numpy as np

    from pipeline.evaluation.retrieval.blocks import Cells, Direction, Floats, Ids, Index, Marks, Singles
    from pipeline.evaluation.retrieval.collection import Collection, Side, rows_of
    from pipeline.evaluation.retrieval.embeddings import Embeddings
    from pipeline.evaluation.retrieval.protocols import Protocol, consecutive_captions, protocol
    from pipeline.evaluation.retrieval.ranking import rank
    from pipeline.evaluation.retrieval.ranks import QueryRanks, Ranks, Ties
    from pipeline.evaluation.retrieval.relevance import Positives, Relevance
    from pipeline.evaluation.retrieval.similarity import PerDirection, Scores, Similarity, as_similarity, select
    from pipeline.evaluation.retrieval.top import VectorIndex
    from pipeline.evaluation.retrieval.workers import Progress

PROTOCOLS: "lazy.LookupTable[Protocol]" = lazy.LookupTable({
    "all": "pipeline.evaluation.retrieval.protocols:ALL",
    "flickr30k_1k": "pipeline.evaluation.retrieval.protocols:FLICKR30K_1K",
    "coco_5k": "pipeline.evaluation.retrieval.protocols:COCO_5K",
    "coco_1k_5fold": "pipeline.evaluation.retrieval.protocols:COCO_1K_5FOLD",
    "multi30k_2016": "pipeline.evaluation.retrieval.protocols:MULTI30K_2016",
    "msrvtt_full": "pipeline.evaluation.retrieval.protocols:MSRVTT_FULL",
    "msrvtt_1ka": "pipeline.evaluation.retrieval.protocols:MSRVTT_1KA",
    "vatex_1500": "pipeline.evaluation.retrieval.protocols:VATEX_1500",
}, "protocols")
"""Name -> the rules of a benchmark. The table's name is the protocol's own."""

INDEXES: "lazy.LookupTable[Callable[[np.ndarray], VectorIndex]]" = lazy.LookupTable({
    "exact": "pipeline.evaluation.retrieval.nearest:Exact",
}, "indexes", "index")
"""Name -> what finds nearest vectors: in a search, for hard negatives, and candidates for reranking."""

lazy.offer(__name__)

"""Image-text retrieval: similarities and relevance in, ranks out, by protocol."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy
from pipeline.foundation.parts.errors import InputError

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.retrieval import embeddings, siblings
    from pipeline.foundation.evaluation.retrieval.blocks import (
        Cells,
        Direction,
        Floats,
        Ids,
        Index,
        Marks,
        Singles,
    )
    from pipeline.foundation.evaluation.retrieval.collection import Collection, Side, rows_of
    from pipeline.foundation.evaluation.retrieval.embeddings import Embeddings
    from pipeline.foundation.evaluation.retrieval.lists import Lists
    from pipeline.foundation.evaluation.retrieval.protocols import Protocol, consecutive_captions
    from pipeline.foundation.evaluation.retrieval.ranking import rank
    from pipeline.foundation.evaluation.retrieval.ranks import KnownRanks, QueryRanks, Ranks, Ties
    from pipeline.foundation.evaluation.retrieval.relevance import Positives, Relevance
    from pipeline.foundation.evaluation.retrieval.similarity import (
        PerDirection,
        Scores,
        Similarity,
        as_similarity,
        select,
    )
    from pipeline.foundation.evaluation.retrieval.workers import Progress

lazy.imports(__name__)

PROTOCOLS: "lazy.LookupTable[Protocol]" = lazy.LookupTable(
    {
        "all": "pipeline.foundation.evaluation.retrieval.protocols:ALL",
        "flickr30k_1k": "pipeline.foundation.evaluation.retrieval.protocols:FLICKR30K_1K",
        "coco_5k": "pipeline.foundation.evaluation.retrieval.protocols:COCO_5K",
        "coco_1k_5fold": "pipeline.foundation.evaluation.retrieval.protocols:COCO_1K_5FOLD",
        "multi30k_2016": "pipeline.foundation.evaluation.retrieval.protocols:MULTI30K_2016",
        "msrvtt_full": "pipeline.foundation.evaluation.retrieval.protocols:MSRVTT_FULL",
        "msrvtt_1ka": "pipeline.foundation.evaluation.retrieval.protocols:MSRVTT_1KA",
        "vatex_1500": "pipeline.foundation.evaluation.retrieval.protocols:VATEX_1500",
    },
    "protocols",
    base="pipeline.foundation.evaluation.retrieval.protocols:Protocol",
)
"""Name -> the rules of a benchmark. The table's name is the protocol's own."""


def protocol(name: "str | Protocol") -> "Protocol":
    """The protocol of a name, a key of `PROTOCOLS`; a protocol is returned.

    Raises:
        InputError: For an unknown name, or where another package offers something else under it.
    """
    from pipeline.foundation.evaluation.retrieval.protocols import Protocol

    if isinstance(name, Protocol):
        return name
    rules = PROTOCOLS.find(name)
    if not isinstance(rules, Protocol) or rules.name != name:
        raise InputError(f"protocol {name!r}: expected a Protocol of this name, got {rules!r:.60}")
    return rules


def of_packages(names: Iterable[str]) -> "list[tuple[lazy.LookupTable[Protocol], str]]":
    """The table and name of each protocol of another package among names, as `artefacts.versions`
    takes them.
    """
    return [
        (PROTOCOLS, name) for name in names if not PROTOCOLS.is_built_in(name) and name in PROTOCOLS
    ]

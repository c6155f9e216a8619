"""Retrieve and rerank: a retriever's best candidates of each query, reordered by a scorer of pairs.

    base.py         the interface of a scorer of pairs, and the images and captions that one is
                    opened for
    stored.py       scorers: stored similarities of another system
    pixels.py       scorers: published networks that read the image files; trained heads are in
                    pipeline/make/training/pair_scorers.py
    candidates.py   the best k of each query
    shards.py       scores of the pairs, shard by shard
    record.py       the facts of the new system
    rerank.py       all of it: candidates, pairs, the system and its record
    tuning.py       k and the weight of a combination, chosen on val

Source: Geigle et al., "Retrieve Fast, Rerank Smart", TACL 2022. A new scorer is a file here and a
    line in `SCORERS`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline.foundation.artefacts.record import FILE, require
from pipeline.foundation.parts import lazy
from pipeline.foundation.parts.errors import InputError, unknown

if TYPE_CHECKING:
    from pipeline.judge.systems.reranking.base import PairScorer, PairSource

lazy.imports(__name__)

# Kind of scorer -> what builds one from a name and a `PairSource`.
SCORERS: "lazy.LookupTable[Callable[[str, PairSource], PairScorer]]" = lazy.LookupTable(
    {
        "system": "pipeline.judge.systems.reranking.stored:StoredSystem",
        "cross": "pipeline.make.training.pair_scorers:CrossScorer",
        "late": "pipeline.make.training.pair_scorers:LateScorer",
        "blip": "pipeline.judge.systems.reranking.pixels:Blip",
        "blip2": "pipeline.judge.systems.reranking.pixels:Blip2",
        "vilt": "pipeline.judge.systems.reranking.pixels:Vilt",
        "bridgetower": "pipeline.judge.systems.reranking.pixels:BridgeTower",
    },
    "scorers",
)


def build(kind: str, name: str, source: "PairSource") -> "PairScorer":
    """Build a scorer.

    Args:
        kind: A key of `SCORERS`.
        name: What it is built from: a system's, a head's or a network's.
        source: The images and captions that it pairs, and its options.

    Raises:
        InputError: If it cannot be opened, or does not take the options.
    """
    return SCORERS.build(kind, name, source, **source.options)


def resolve(name: str, source: "PairSource") -> tuple[str, str]:
    """The key of `SCORERS` and the name that a user's name means.

    Args:
        name: `KIND:NAME` with a key of `SCORERS`; or the name of a head that scores pairs, or of a
            system.
        source: The images and captions that it pairs.

    Raises:
        InputError: If there is nothing of that name.
    """
    kind, _, rest = name.partition(":")
    if rest and kind in SCORERS:
        return kind, rest
    folder = source.paths.head(source.dataset, name)
    if (folder / FILE).is_file():
        scorer = require(folder).facts.get("scorer")
        if scorer in SCORERS:
            return str(scorer), name
    if source.paths.similarity(source.dataset, name, source.split).exists():
        return "system", name
    if rest:
        raise unknown("kind of scorer", kind, SCORERS)
    raise InputError(
        f"no scorer {name!r} for {source.dataset}: expected a scored system, a head that scores pairs, or "
        f"KIND:NAME with KIND one of {', '.join(SCORERS)}"
    )

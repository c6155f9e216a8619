"""The steps of a reranked system: its candidates found again, its scorer as it was, some pairs scored again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline import reranking
from pipeline.errors import InputError
from pipeline.files.digest import digest
from pipeline.paths import Paths
from pipeline.provenance.step import Step
from pipeline.reranking import candidates
from pipeline.reranking.base import PairScorer, PairSource
from pipeline.reranking.candidates import Pairs
from pipeline.reranking.rerank import of_store
from pipeline.scores.reranked_store import KEY, protocol_of
from pipeline.scores.similarity_store import SimilarityStore

PAIRS = 2048
"""How many pairs are scored again, drawn anew each time so that nobody can know which ones."""
ROUNDING = 1e-5
"""Scores may differ by this much when they are computed again, in other batches or on another machine."""


def steps(store: SimilarityStore, paths: Paths) -> Iterator[Step]:
    """Compute a reranked system's candidates again, and the scores of some pairs.

    Args:
        store: The system.
        paths: Where files lie.

    Yields:
        The comparisons.
    """
    record, dataset = store.made_from[KEY], store.made_from["dataset"]
    told = " and ".join(f"{each.places.shape[1]} of {len(each.places)}" for each in store.reranked.values())
    what = f"candidates again, by {record['retriever']['system']}"
    yield Step(store.path, what, told, (_other_candidates(store) or told) if store.reranked else None)
    source = PairSource(paths, dataset, dataset, dataset)
    scorer, name = None, record["scorer"]["name"]
    try:
        scorer = reranking.build(record["scorer"]["kind"], name, source)
        found: str | None = digest(scorer.made_from)
    except InputError as error:
        found = str(error)
    yield Step(store.path, f"what made its scorer {name}", record["scorer"]["made_from"], found)
    if scorer is not None and store.reranked:
        yield Step(store.path, "pairs scored again", "equal", _other_pair(store, scorer) or "equal")


def _other_candidates(store: SimilarityStore) -> str | None:
    """The first query whose candidates are others when sought again, in words; None where there is none."""
    assert store.retriever is not None
    pool, record = of_store(store.retriever), store.made_from[KEY]
    width = min(each.places.shape[1] for each in store.reranked.values())
    whole = any(each.places.shape[1] != width for each in store.reranked.values())
    try:
        again = candidates.find(pool, protocol_of(record), "all" if whole else width)
    except InputError as error:
        return str(error)
    for name, mine in store.reranked.items():
        other = again[name]
        if mine.places.shape != other.places.shape:
            return f"{other.places.shape[1]} a query"
        wrong = (mine.places != other.places) | ~(np.abs(mine.retrieved - other.retrieved) <= ROUNDING)
        if wrong.any():
            query, place = np.argwhere(wrong)[0].tolist()
            return f"{name} query {query}: candidate {place + 1} is row {other.places[query, place]} when sought again"
    return None


def _other_pair(store: SimilarityStore, scorer: PairScorer) -> str | None:
    """The first of some pairs that has another score, in words; None where there is none."""
    captions = len(store.caption_ids)
    every = candidates.wanted(store.reranked, captions)
    chosen = np.sort(np.random.default_rng().permutation(len(every))[:PAIRS])
    pairs = Pairs(every.image[chosen], every.caption[chosen])
    ids = store.image_ids[pairs.image], store.caption_ids[pairs.caption]
    try:
        again = scorer.score(*ids)
    except InputError as error:
        return str(error)
    keys = pairs.image * captions + pairs.caption
    for name, each in store.reranked.items():
        query = np.arange(len(each.places))[:, None]
        mine = query * captions + each.places if name == "i2t" else each.places * captions + query
        at = np.searchsorted(keys, mine).clip(max=len(keys) - 1)
        compared = (keys[at] == mine) & (each.places >= 0)
        wrong = compared & ~(np.abs(each.scores - again[at]) <= ROUNDING * np.maximum(1, np.abs(again[at])))
        if wrong.any():
            place = tuple(np.argwhere(wrong)[0].tolist())
            pair = int(at[place])
            return (f"{each.scores[place]:.6f} for image {ids[0][pair]} and caption {ids[1][pair]}, scored again "
                    f"{again[pair]:.6f}")
    return None

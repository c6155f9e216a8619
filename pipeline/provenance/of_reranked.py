"""The steps of a reranked system: its candidates found again, its scorer as it was, some pairs scored again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import zarr

from pipeline import reranking
from pipeline.errors import InputError
from pipeline.files.digest import digest
from pipeline.paths import Paths
from pipeline.provenance.step import Step
from pipeline.reranking import candidates
from pipeline.reranking.base import PairScorer, PairSource
from pipeline.reranking.candidates import Pairs, Searched
from pipeline.reranking.rerank import of_enlarged, of_store
from pipeline.scores import reranked_store
from pipeline.scores.by_language import languages_of
from pipeline.scores.embedding_store import EmbeddingStore
from pipeline.scores.reranked_pool import recorded
from pipeline.scores.reranked_store import KEY, Scored, protocol_of
from pipeline.scores.similarity_store import SimilarityStore

PAIRS = 2048
"""How many pairs are scored again, drawn anew each time so that nobody can know which ones."""
ROUNDING = 1e-5
"""Scores may differ by this much when they are computed again, in other batches or on another machine."""


def steps(store: SimilarityStore, paths: Paths) -> Iterator[Step]:
    """Compare a reranked system's candidates, its scorer and the scores of some pairs with what they are now.

    Args:
        store: The system.
        paths: Where files lie; embeddings of distractors are looked for below `embeddings`.

    Yields:
        The comparisons.
    """
    record, dataset = store.made_from[KEY], store.made_from["dataset"]
    scorer, name = None, record["scorer"]["name"]
    try:
        pool = _pool(store, paths)
        found = _candidates(store, pool)
        told = " and ".join(f"{each.places.shape[1]} of {len(each.places)}" for each in found.values())
        said: str | None = _other_candidates(found, pool, record) or told
    except InputError as error:
        pool, found, told, said = None, {}, "candidates", str(error)
    yield Step(store.path, f"candidates again, by {record['retriever']['system']}", told, said)
    try:
        own = record["scorer"].get("trained_on", dataset) if record["scorer"]["kind"] != "system" else dataset
        source = PairSource(paths, own, dataset, dataset, split=store.made_from["split"])
        scorer = reranking.build(record["scorer"]["kind"], name, source)
        made: str | None = digest(scorer.made_from)
    except InputError as error:
        made = str(error)
    yield Step(store.path, f"what made its scorer {name}", record["scorer"]["made_from"], made)
    if scorer is not None and pool is not None:
        yield Step(store.path, "pairs scored again", "equal", _other_pair(found, pool, scorer) or "equal")


def _pool(store: SimilarityStore, paths: Paths) -> Searched:
    """Where its candidates were sought. Raises InputError where the embeddings of distractors are gone."""
    assert store.retriever is not None
    wanted = store.made_from[KEY]["distractors"]
    if not wanted:
        return of_store(store.retriever, languages_of(store.retriever, paths))
    there = [EmbeddingStore.open(path) for path in sorted(paths.root.glob("embeddings/*/*.zarr"))]
    by_seal = {each["seal"]: found for each, found in zip(recorded(there), there, strict=True)}
    if missing := [each["dataset"] for each in wanted if each["seal"] not in by_seal]:
        raise InputError(f"the embeddings of {missing[0]} are not below {paths.root / 'embeddings'}")
    return of_enlarged(store.retriever, [by_seal[each["seal"]] for each in wanted])


def _candidates(store: SimilarityStore, pool: Searched) -> Mapping[str, Scored]:
    if store.reranked:
        return store.reranked
    return reranked_store.read(store.path, zarr.open_group(store.path, mode="r", zarr_format=3), pool.scores.shape)


def _other_candidates(found: Mapping[str, Scored], pool: Searched, record: Mapping[str, Any]) -> str | None:
    """The first query whose candidates are others when sought again, in words; None where there is none."""
    widths = {each.places.shape[1] for each in found.values()}
    again = candidates.find(pool, protocol_of(record), "all" if len(widths) > 1 else widths.pop())
    for name, mine in found.items():
        other = again[name]
        if mine.places.shape != other.places.shape:
            return f"{other.places.shape[1]} a query"
        wrong = (mine.places != other.places) | ~(np.abs(mine.retrieved - other.retrieved) <= ROUNDING)
        if wrong.any():
            query, place = np.argwhere(wrong)[0].tolist()
            return f"{name} query {query}: candidate {place + 1} is row {other.places[query, place]} when sought again"
    return None


def _other_pair(found: Mapping[str, Scored], pool: Searched, scorer: PairScorer) -> str | None:
    """The first of some pairs that has another score, in words; None where there is none.

    Pairs with another data set's distractors are left out: their scorer is opened for both.
    """
    captions = len(pool.caption_ids)
    every = candidates.wanted(found, captions)
    own = (pool.image_dataset[every.image] == 0) & (pool.caption_dataset[every.caption] == 0)
    every = Pairs(every.image[own], every.caption[own])
    chosen = np.sort(np.random.default_rng().permutation(len(every))[:PAIRS])
    pairs = Pairs(every.image[chosen], every.caption[chosen])
    ids = pool.image_ids[pairs.image], pool.caption_ids[pairs.caption]
    try:
        again = scorer.score(*ids)
    except InputError as error:
        return str(error)
    keys = pairs.image * captions + pairs.caption
    for name, each in found.items():
        query = np.arange(len(each.places))[:, None]
        mine = query * captions + each.places if name.endswith("i2t") else each.places * captions + query
        at = np.searchsorted(keys, mine).clip(max=len(keys) - 1)
        compared = (keys[at] == mine) & (each.places >= 0)
        wrong = compared & ~(np.abs(each.scores - again[at]) <= ROUNDING * np.maximum(1, np.abs(again[at])))
        if wrong.any():
            place = tuple(np.argwhere(wrong)[0].tolist())
            pair = int(at[place])
            return (f"{each.scores[place]:.6f} for image {ids[0][pair]} and caption {ids[1][pair]}, scored again "
                    f"{again[pair]:.6f}")
    return None

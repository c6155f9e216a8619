"""The steps of a reranked system: its candidates found again, its scorer as it was, some pairs scored again."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pipeline.files.digest import digest
from pipeline.parts.errors import InputError
from pipeline.provenance.step import Step
from pipeline.settings.paths import Paths
from pipeline.systems import reranking
from pipeline.systems.reranking import PairScorer, PairSource, candidates
from pipeline.systems.scores import judged, reranked
from pipeline.systems.scores.system import Candidates, System, recorded

#: How many pairs are scored again, chosen at random each time so that nobody can know which ones.
PAIRS = 2048
#: Scores may differ by this much when they are computed again, in other batches or on another machine.
ROUNDING = 1e-5


def steps(store: System, paths: Paths) -> Iterator[Step]:
    """Compare a reranked system's candidates, its scorer and the scores of some pairs with what they are now."""
    record, dataset = store.made_from.reranked, store.made_from["dataset"]
    scorer, name = None, record["scorer"]["name"]
    try:
        assert isinstance(store.kind, Candidates)
        pool = _pool(store, store.kind, paths)
        found = store.kind.found_in(pool.shape)
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


def _pool(store: System, kind: Candidates, paths: Paths) -> System:
    """Where its candidates were sought. Raises InputError where the embeddings of distractors are gone."""
    wanted = store.made_from.reranked["distractors"]
    if not wanted:
        return judged.in_languages(kind.retriever, paths)
    there = [System.open_vectors(path) for path in sorted(paths.root.glob("embeddings/*/*.zarr"))]
    by_seal = {each["seal"]: found for each, found in zip(recorded(there), there, strict=True)}
    if missing := [each["dataset"] for each in wanted if each["seal"] not in by_seal]:
        raise InputError(f"the embeddings of {missing[0]} are not below {paths.root / 'embeddings'}")
    return kind.retriever.among([by_seal[each["seal"]] for each in wanted])


def _other_candidates(found: Mapping[str, reranked.Scored], pool: System, record: Mapping[str, Any]) -> str | None:
    """The first query whose candidates are others when sought again, in words; None where there is none."""
    widths = {each.places.shape[1] for each in found.values()}
    again = candidates.find(pool, reranked.protocol_of(record), "all" if len(widths) > 1 else widths.pop())
    for name, mine in found.items():
        other = again[name]
        if mine.places.shape != other.places.shape:
            return f"{other.places.shape[1]} a query"
        wrong = (mine.places != other.places) | ~(np.abs(mine.retrieved - other.retrieved) <= ROUNDING)
        if wrong.any():
            query, place = np.argwhere(wrong)[0].tolist()
            return f"{name} query {query}: candidate {place + 1} is row {other.places[query, place]} when sought again"
    return None


def _other_pair(found: Mapping[str, reranked.Scored], pool: System, scorer: PairScorer) -> str | None:
    """The first of some pairs that has another score, in words; None where there is none.

    Pairs with another data set's distractors are left out: their scorer is opened for both.
    """
    captions = pool.shape[1]
    every = candidates.wanted(found, captions)
    (of_image, image_ids), (of_caption, caption_ids) = pool.items("image"), pool.items("caption")
    own = (of_image[every.image] == 0) & (of_caption[every.caption] == 0)
    every = candidates.Pairs(every.image[own], every.caption[own])
    chosen = np.sort(np.random.default_rng().permutation(len(every))[:PAIRS])
    pairs = candidates.Pairs(every.image[chosen], every.caption[chosen])
    ids = image_ids[pairs.image], caption_ids[pairs.caption]
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

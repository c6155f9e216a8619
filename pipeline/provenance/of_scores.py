"""The steps of a system's scores: the record of each store, the bytes of its arrays, its images and captions.

For a reranked system: its candidates retrieved again, its scorer compared, some pairs scored again.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from pipeline.artefacts import artefact
from pipeline.evaluation.retrieval.collection import Collection
from pipeline.files.compared import Step
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.provenance import computed_again
from pipeline.provenance.traced import Traced
from pipeline.settings.paths import Paths
from pipeline.systems import given, reranking
from pipeline.systems.reranking import PairScorer, PairSource, candidates
from pipeline.systems.reranking.base import identity
from pipeline.systems.scores import judged, layout, reranked
from pipeline.systems.scores.made import Reranked
from pipeline.systems.scores.sources import Vectors
from pipeline.systems.scores.system import Candidates, System

# How many pairs are scored again, chosen at random each time so that nobody can know which ones.
PAIRS = 2048
# Scores may differ by this much when they are computed again, in other batches or on another machine.
ROUNDING = 1e-5


def steps(traced: Traced, paths: Paths, manifest: Manifest, block_megabytes: float) -> Iterator[Step]:
    """Compare the result's own store and numbers, then the stores that an ensemble was made of."""
    result = traced.result
    if result is not None and traced.file is not None:
        yield from result.verify(traced.file, result.request.name)
    above = None if result is None else result.system.identity
    yield from _store(traced.path, above, paths, manifest, result is not None)
    if result is not None and traced.path.exists():
        try:
            yield from computed_again.numbers(traced.path, result, block_megabytes, manifest)
        except InputError as error:
            yield Step(traced.path, "measured again", "its numbers", str(error))
    yield from _parts(traced.path, paths, manifest, {traced.path})


def _parts(path: Path, paths: Paths, manifest: Manifest, seen: set[Path]) -> Iterator[Step]:
    """Compare the systems that a store was made from, and those that these were made from; `seen` are left out."""
    try:
        store = System.open_either(path)
    except InputError:  # the store's own steps say it
        return
    for part in store.made_of:
        below = paths.similarity(store.made_from.dataset, part.name, str(store.split))
        yield from _store(below, part.identity, paths, manifest, True)
        if below not in seen:
            yield from _parts(below, paths, manifest, seen | {below})


def _store(path: Path, above: str | None, paths: Paths, manifest: Manifest, is_recorded: bool) -> Iterator[Step]:
    """above: its identity, as recorded in what was made from it; is_recorded: whether there is such a record."""
    if not path.exists():
        yield Step(path, "what made it", above, None)
        return
    arrays = {array.parent.name for array in path.glob("*/zarr.json")}
    try:
        store = System.open_either(path)
    except InputError as error:
        yield from artefact.verify(path, layout.HEADER)
        yield Step(path, "what made it", above, str(error))
        return
    yield from store.store.verify(*sorted({*store.store.record.contents, *arrays}))
    if is_recorded:
        yield Step(path, "what made it", above, store.reference.identity)
        yield Step(path, "the name it was written under", path.stem, store.written_name)
    yield Step(path, "whose scores, by the manifest", _size(store), _ids(store, manifest))
    yield from given.steps(store.made_from, paths.root)
    if isinstance(store.kind, Vectors):
        return
    if store.made_from.reranked:
        yield from reranked_steps(store, paths)
    elif computed_again.can_be(store):
        yield computed_again.scores(store, paths)


def _size(store: System) -> str:
    return f"{len(store.image_ids)} images, {len(store.caption_ids)} captions of {store.split}"


def _ids(store: System, manifest: Manifest) -> str:
    """The store's size if its rows and columns are right images and captions of its split; else what is wrong."""
    split = manifest.split(str(store.split))
    owner = Collection(split.image_ids, split.caption_ids, split.caption_image).image_of_caption()
    if extra := np.setdiff1d(store.image_ids, split.image_ids).tolist():
        return f"image {extra[0]}, which is not in the split {split.name}"
    for what, ids in (("image", store.image_ids), ("caption", store.caption_ids)):
        if len(np.unique(ids)) < len(ids):
            return f"the same {what} twice"
    for caption, image in store.image_of_caption().items():
        if owner.get(caption) != image:
            return f"caption {caption} as of image {image}"
    kept = set(store.image_ids.tolist())
    missing = sum(image in kept for image in owner.values()) - len(store.caption_ids)
    return _size(store) if not missing else f"{_size(store)}; {missing} captions are missing"


def reranked_steps(store: System, paths: Paths) -> Iterator[Step]:
    """Compare a reranked system's candidates, its scorer and the scores of some pairs with what they are now."""
    record, dataset = store.made_from.reranked, store.made_from.dataset
    assert record is not None
    scorer, name = None, record.scorer["name"]
    try:
        assert isinstance(store.kind, Candidates)
        pool = _pool(store, store.kind, paths)
        found = store.kind.found_in(pool.shape)
        stored = " and ".join(f"{each.places.shape[1]} of {len(each.places)}" for each in found.values())
        recomputed: str | None = _other_candidates(found, pool, record) or stored
    except InputError as error:
        pool, found, stored, recomputed = None, {}, "candidates", str(error)
    yield Step(store.path, f"candidates again, by {record.retriever}", stored, recomputed)
    try:
        trained_on = dataset if record.by_system else record.scorer.get("trained_on", dataset)
        source = PairSource(paths, trained_on, dataset, dataset, split=str(store.split),
                            options=record.scorer.get("options", {}))
        scorer = reranking.build(record.scorer["kind"], record.place, source)
        made: str | None = identity(scorer)
    except InputError as error:
        made = str(error)
    yield Step(store.path, f"what made its scorer {name}", record.scorer["made_from"], made)
    if scorer is not None and pool is not None:
        yield Step(store.path, "pairs scored again", "equal", _other_pair(found, pool, scorer) or "equal")


def _pool(store: System, kind: Candidates, paths: Paths) -> System:
    """The pool that its candidates were retrieved from. Raises InputError if embeddings of distractors are missing."""
    wanted = [part for role, part in store.store.record.made_from.items() if role.startswith("distractor.")]
    if not wanted:
        return judged.in_languages(kind.retriever, paths)
    existing = [System.open_vectors(path) for path in sorted(paths.root.glob("embeddings/*/*.zarr"))]
    by_identity = {each.reference.identity: each for each in existing}
    if missing := [part.name for part in wanted if part.identity not in by_identity]:
        raise InputError(f"the embeddings {missing[0]} are not below {paths.root / 'embeddings'}")
    return kind.retriever.among([by_identity[part.identity] for part in wanted])


def _other_candidates(found: Mapping[str, reranked.Scored], pool: System, record: Reranked) -> str | None:
    """Describe the first query whose candidates differ when they are retrieved again; None if none does."""
    widths = {each.places.shape[1] for each in found.values()}
    again = candidates.find(pool, reranked.protocol_of(record.protocol), "all" if len(widths) > 1 else widths.pop())
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
    """Describe the first of some pairs whose score differs when it is computed again; None if none does.

    Pairs with another data set's distractors are left out, because their scorer is opened for both data sets.
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

"""The steps of a system: its record and arrays, its images and captions, its facts, and its scores
computed again.

For a reranked system: its candidates retrieved again, its scorer compared, some pairs scored again.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from pipeline.foundation.artefacts import artefact
from pipeline.foundation.evaluation.retrieval.collection import Collection
from pipeline.foundation.files.compared import Step
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError, counted, refusing
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems import given, reranking
from pipeline.judge.systems.requests import FuseRequest, RerankRequest, RescoreRequest
from pipeline.judge.systems.reranking import PairScorer, PairSource, candidates, record as records
from pipeline.judge.systems.reranking.base import identity
from pipeline.judge.systems.rescoring.stored import made as of_rescored
from pipeline.judge.systems.scores import judged, layout, of_ensemble, reranked
from pipeline.judge.systems.scores.made import (
    Ensemble,
    Made,
    OfEncoder,
    OfGiven,
    Reranked,
    Rescored,
)
from pipeline.judge.systems.scores.sources import Vectors
from pipeline.judge.systems.scores.system import Candidates, System
from pipeline.make.dual_encoders import record as encoders
from pipeline.run.provenance import computed_again, of_head, walk
from pipeline.run.provenance.checks import facts_again
from pipeline.run.provenance.context import Context
from pipeline.run.provenance.walk import Link

# How many pairs are scored again, chosen at random each time so that nobody can know which ones.
PAIRS = 2048
# Scores may differ by this much when they are computed again, in other batches or on another
# machine.
ROUNDING = 1e-5


def steps(path: Path, context: Context) -> Iterator[Step]:
    """Compare a system with its record, with the manifest and with what it was made from."""
    if not path.exists():
        return
    arrays = {array.parent.name for array in path.glob("*/zarr.json")}
    try:
        store = System.open_either(path)
    except InputError as error:
        yield from artefact.verify(path, layout.HEADER)
        yield Step(path, "the system", "readable", str(error))
        return
    yield from store.store.verify(*sorted({*store.store.record.contents, *arrays}))
    yield Step(path, "the name it was written under", path.stem, store.written_name)
    manifest = context.manifest(store.made_from.dataset)
    yield Step(path, "whose scores, by the manifest", _size(store), _ids(store, manifest))
    yield from given.steps(store.made_from, context.paths.root)
    yield from _by_inputs(store, manifest, context)
    if isinstance(store.made_from, Reranked):
        yield from reranked_steps(store, context.paths)
    elif not isinstance(store.kind, Vectors) and computed_again.can_be(store):
        yield computed_again.scores(store, context.paths)


def _by_inputs(store: System, manifest: Manifest, context: Context) -> Iterator[Step]:
    """Compare a system's facts, and vectors, with what it was made from."""
    inputs = context.inputs(store.path)
    made = store.made_from
    if "head" in inputs:
        yield from of_head.steps_of_system(store, inputs, manifest, context)
    elif "vectors" in inputs:
        yield from _by_vectors(store, inputs["vectors"].path, manifest)
    elif isinstance(made, OfEncoder):
        yield from of_head.steps_of_encoder(store, manifest, context)
    elif isinstance(made, OfGiven):
        yield facts_again(store, lambda: given.facts(given.request_of(store), manifest))
    elif isinstance(made, Ensemble | Rescored) and all(
        link.path.exists() for link in inputs.values()
    ):
        yield facts_again(store, lambda: _of_others(store, inputs))


def _by_vectors(store: System, path: Path, manifest: Manifest) -> Iterator[Step]:
    """Compare the scores of stored vectors with these."""
    if not path.exists():
        return
    what = f"its vectors, by {path.stem}"
    try:
        vectors = encoders.of_split(System.open_vectors(path), manifest, str(store.split))
        stored = store.embeddings()
        same_images = np.array_equal(stored.images, vectors.images)
        same_captions = np.array_equal(stored.captions, vectors.captions)
        recomputed = "others"
        if same_images and same_captions:
            recomputed = "equal"
        yield Step(store.path, what, "equal", recomputed)
        yield facts_again(store, lambda: vectors.made_from)
    except InputError as error:
        yield Step(store.path, what, "equal", str(error))


def _of_others(store: System, inputs: Mapping[str, Link]) -> Made:
    """The facts of an ensemble, or of a corrected system, by what it is made of."""
    record = store.store.record
    with refusing(
        (ValueError, KeyError), f"{store.path}: its record does not say what it was made from"
    ):
        if record.kind == RescoreRequest.kind:
            source = System.open(inputs["source"].path)
            return of_rescored(source, RescoreRequest.model_validate(record.request))
        request = FuseRequest.model_validate(record.request)
        roles = [role for role in record.made_from if role.startswith("member.")]
        members = [System.open(inputs[role].path) for role in roles]
        return of_ensemble.made_from(request, members)


def _of_reranked(store: System, pool: System, scorer: PairScorer) -> Made:
    """The facts of a reranked system, by its pool and its scorer as they are now."""
    with refusing(ValueError, f"{store.path}: its record does not say how it was reranked"):
        request = RerankRequest.model_validate(store.store.record.request)
    assert isinstance(store.kind, Candidates)
    record = store.kind.record
    if request.tune:  # the record alone says what was chosen
        chosen = {"k": record.k, "weight": record.weight, "tuned": record.tuned}
        request = request.model_copy(update=chosen)
    place = record.scorer.place
    return records.made_from(store.kind.retriever, scorer, place, request, pool.pools[1:])


def _size(store: System) -> str:
    images = counted(len(store.image_ids), "image")
    captions = counted(len(store.caption_ids), "caption")
    return f"{images}, {captions} of {store.split}"


def _ids(store: System, manifest: Manifest) -> str:
    """The store's size if its rows and columns are right images and captions of its split; else
    what is wrong.
    """
    split = manifest.split(str(store.split))
    owner = Collection(split.image_ids, split.caption_ids, split.caption_image).image_of_caption()
    extra = np.setdiff1d(store.image_ids, split.image_ids).tolist()
    if extra:
        return f"image {extra[0]}, which is not in the split {split.name}"
    for what, ids in (("image", store.image_ids), ("caption", store.caption_ids)):
        if len(np.unique(ids)) < len(ids):
            return f"the same {what} twice"
    for caption, image in store.image_of_caption().items():
        if owner.get(caption) != image:
            return f"caption {caption} as of image {image}"
    images = set(store.image_ids.tolist())
    missing = sum(image in images for image in owner.values()) - len(store.caption_ids)
    if not missing:
        return _size(store)
    return f"{_size(store)}; {counted(missing, 'caption')} missing"


def reranked_steps(store: System, paths: Paths) -> Iterator[Step]:
    """Compare a reranked system's candidates, its scorer and the scores of some pairs with what
    they are now.
    """
    record = store.made_from
    assert isinstance(record, Reranked)
    pool: System | None = None
    scored: Mapping[str, reranked.Scored] = {}
    stored = "candidates"
    try:
        assert isinstance(store.kind, Candidates)
        pool = _pool(store, store.kind, paths)
        scored = store.kind.found_in(pool.shape)
        counts = []
        for of_way in scored.values():
            queries, width = of_way.places.shape
            counts.append(f"{width} of {queries}")
        different = _other_candidates(scored, pool, record)
        stored = " and ".join(counts)
        recomputed = different or stored
    except InputError as error:
        pool = None
        recomputed = str(error)
    yield Step(store.path, f"candidates again, by {record.retriever}", stored, recomputed)
    scorer: PairScorer | None = None
    try:
        scorer = _scorer(store, record, paths)
        made = identity(scorer)
    except InputError as error:
        made = str(error)
    described = record.scorer
    yield Step(store.path, f"what made its scorer {described.name}", described.made_from, made)
    if scorer is not None and pool is not None:
        yield facts_again(store, partial(_of_reranked, store, pool, scorer))
        different = other_pair(scored, pool, scorer)
        yield Step(store.path, "pairs scored again", "equal", different or "equal")


def _scorer(store: System, record: Reranked, paths: Paths) -> PairScorer:
    """The scorer of a reranked system, as it is now."""
    dataset = store.made_from.dataset
    described = record.scorer
    trained_on = dataset
    if described.trained_on and not described.is_system:
        trained_on = described.trained_on
    source = PairSource(
        paths, trained_on, dataset, dataset, split=str(store.split), options=described.options
    )
    return reranking.build(described.kind, described.place, source)


def _pool(store: System, kind: Candidates, paths: Paths) -> System:
    """The pool that its candidates were retrieved from. Raises InputError if embeddings of
    distractors are missing.
    """
    distractors = walk.distractors(walk.inputs(store.path, paths))
    if distractors:
        return kind.retriever.among([System.open_vectors(path) for path in distractors])
    return judged.in_languages(kind.retriever, paths)


def _other_candidates(
    scored: Mapping[str, reranked.Scored], pool: System, record: Reranked
) -> str | None:
    """Describe the first query whose candidates differ when they are retrieved again; None if none
    does.
    """
    widths = {of_way.places.shape[1] for of_way in scored.values()}
    k: int | Literal["all"] = "all"
    if len(widths) == 1:
        k = widths.pop()
    again = candidates.find(pool, reranked.protocol_of(record.protocol), k)
    for name, stored in scored.items():
        other = again[name]
        if stored.places.shape != other.places.shape:
            return f"{other.places.shape[1]} a query"
        is_near = np.abs(stored.retrieved - other.retrieved) <= ROUNDING
        wrong = (stored.places != other.places) | ~is_near
        if wrong.any():
            query, place = np.argwhere(wrong)[0].tolist()
            row = other.places[query, place]
            return f"{name} query {query}: candidate {place + 1} is row {row} when sought again"
    return None


def other_pair(
    scored: Mapping[str, reranked.Scored], pool: System, scorer: PairScorer
) -> str | None:
    """Describe the first of some pairs whose score differs when it is computed again; None if none
    does.
    """
    captions = pool.shape[1]
    of_image, image_ids = pool.items("image")
    of_caption, caption_ids = pool.items("caption")
    pairs = candidates.pairs_of(scored, captions)
    of_queries = (of_image[pairs.image] == 0) & (of_caption[pairs.caption] == 0)
    in_any_order = np.random.default_rng().permutation(np.flatnonzero(of_queries))
    chosen = np.sort(in_any_order[:PAIRS])
    pairs = candidates.Pairs(pairs.image[chosen], pairs.caption[chosen])
    images = image_ids[pairs.image]
    captions_of_pairs = caption_ids[pairs.caption]
    try:
        again = scorer.score(images, captions_of_pairs)
    except InputError as error:
        return str(error)
    keys = pairs.image * captions + pairs.caption
    for name, stored in scored.items():
        stored_keys = candidates.keys_of(name, stored.places, captions)
        at = np.searchsorted(keys, stored_keys).clip(max=len(keys) - 1)
        reach = ROUNDING * np.maximum(1, np.abs(again[at]))
        is_near = np.abs(stored.scores - again[at]) <= reach
        wrong = (keys[at] == stored_keys) & ~is_near
        if wrong.any():
            place = tuple(np.argwhere(wrong)[0].tolist())
            pair = int(at[place])
            names = f"image {images[pair]} and caption {captions_of_pairs[pair]}"
            score = f"{stored.scores[place]:.6f}"
            return f"{score} for {names}, scored again {again[pair]:.6f}"
    return None

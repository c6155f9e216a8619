"""Compute a system's scores and numbers again: the matrix from embeddings or members, the numbers
from the matrix.

Digests show a change, unless its author also wrote new digests. Values that are computed again from
other files show that too.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation.evaluation.retrieval import (
    Embeddings,
    Ids,
    Protocol,
    Side,
    Similarity,
    as_similarity,
    blocks,
    rows_of,
)
from pipeline.foundation.evaluation.statistics import ImageHits
from pipeline.foundation.files.compared import Step
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems import given
from pipeline.judge.systems.rescoring import stored
from pipeline.judge.systems.scores import judged, layout, measured
from pipeline.judge.systems.scores.fuse import fuse
from pipeline.judge.systems.scores.made import (
    Ensemble,
    Fusion,
    MadeOfOthers,
    OfGiven,
    Rescored,
)
from pipeline.judge.systems.scores.sources import Matrices
from pipeline.judge.systems.scores.system import System
from pipeline.run.provenance.results import Result

# Similarities of unit vectors may differ by this much when they are computed again: machines add in
# other orders.
ROUNDING = 1e-5


def can_be(store: System) -> bool:
    """Look up whether scores can be computed again from other stores or files."""
    made = store.made_from
    has_vectors = "image_embeddings" in store.store.record.contents
    return isinstance(made, MadeOfOthers | OfGiven) or has_vectors


def scores(store: System, paths: Paths) -> Step:
    """Compute scores from what they were made of: embeddings, members', others' or given scores;
    compare every cell.
    """
    made = store.made_from
    cells = f"{len(store.image_ids)} x {len(store.caption_ids)}"
    other = None
    names: Sequence[str] = []
    if isinstance(made, OfGiven):
        what = "from the given files"
    elif isinstance(made, Rescored):
        names = [made.system]
        what = f"by {made.rescorer} of {made.system}"
    elif isinstance(made, Ensemble):
        names = made.fusion.members
        what = f"by {made.fusion.method} of its members"
    else:
        what = "from its embeddings"
    stores = [paths.similarity(made.dataset, name, str(made.split)) for name in names]
    if all(path.exists() for path in (*stores, *given.files(made, paths.root))):
        try:
            again = _again(store, [System.open(path) for path in stores], paths)
            matrices = map(as_similarity, _stored(store).matrices)
            different = filter(None, map(_first_difference, matrices, again))
            other = next(different, cells)
        except InputError as error:
            other = str(error)
    return Step(store.path, f"scores again, {what}", cells, other)


def _again(store: System, parts: list[System], paths: Paths) -> list[Similarity]:
    """The matrices of a store, from the systems that it was made of, from its embeddings or from
    given files.
    """
    made = store.made_from
    if isinstance(made, OfGiven):
        again = given.read(given.request_of(store), paths.root, paths.manifest(made.dataset))
        return layout.divided(again.scores)[0]
    if isinstance(made, Rescored):
        rescored = stored.compute(parts[0], made, store.store.record.made_from, paths)
        return layout.divided(rescored.scores)[0]
    if isinstance(made, Ensemble):
        return _fused(store, made.fusion, parts)
    vectors = store.embeddings()
    # Twice as fast as in float64, and close enough.
    return [Embeddings(vectors.images, vectors.captions)]


def _fused(store: System, fusion: Fusion, members: list[System]) -> list[Similarity]:
    """Fuse the members again into the ensemble's matrices."""

    def rows(member: System, side: Side) -> Ids:
        return rows_of(
            member.ids(side), store.ids(side), lambda each: f"{member.name} lacks {side} {each}"
        )

    aligned = []
    for member in members:
        images = rows(member, "image")
        captions = rows(member, "caption")
        aligned.append(member.only(images, captions))
    fused = fuse(aligned, fusion.method, fusion.weights)
    matrices, by_query = layout.divided(fused.scores, fusion.method)
    how = _stored(store).how
    if how != by_query:
        read_by = "mean"
        if how:
            read_by = f"{how.method} with weights {how.weights} of {how.of_each} matrices"
        raise InputError(f"it is read by {read_by}")
    return matrices


def _stored(store: System) -> Matrices:
    assert isinstance(store.kind, Matrices)
    return store.kind


def _first_difference(stored: Any, again: Similarity) -> str | None:
    """Describe the first cell that differs when it is computed again; None if none does."""
    if stored.shape != again.shape:
        return f"{again.shape[0]} x {again.shape[1]} when computed again"
    for rows, columns in blocks.cut(stored.shape, layout.ROWS, layout.COLUMNS):
        mine = np.asarray(stored.block(rows, columns), np.float32)
        other = np.asarray(again.block(rows, columns), np.float32)
        apart = np.abs(mine - other)
        within = apart <= ROUNDING * np.maximum(1, np.abs(mine))  # not so for NaN
        if not within.all():
            row, column = np.argwhere(~within)[0].tolist()
            where = f"row {rows.start + row}, column {columns.start + column}"
            again_there = f"{other[row, column]:.6f}"
            return f"{mine[row, column]:.6f} at {where}, computed again {again_there}"
    return None


def pool_of(path: Path, distractors: Sequence[Path] = ()) -> System:
    """Open what a result was measured of: a store, by its vectors if it holds no scores, among its
    distractors.
    """
    if not distractors:
        return System.open_either(path)
    return System.open_among(path, [System.open_vectors(store) for store in distractors])


def numbers(
    path: Path,
    result: Result,
    file: Path,
    block_megabytes: float,
    manifest: Manifest | None = None,
    distractors: Sequence[Path] = (),
) -> Iterator[Step]:
    """Measure each protocol's numbers, intervals and hits again with the recorded settings.

    path: the system's store. file: the file of results that the numbers stand in.
    """
    pool = pool_of(path, distractors)
    request = result.request
    # If the manifest has changed, another step says so.
    known = None
    if manifest is not None and pool.made_from.manifest == manifest.digest:
        known = manifest
    pool = judged.with_languages(pool, known)
    settings = request.settings.model_copy(update={"block_megabytes": block_megabytes})
    truth = result.truth
    beyond: dict[str, Any] = {}
    if request.extended:
        beyond |= measured.extend(pool, request.extended, settings)
    try:
        pool = judged.judge(pool, truth, known)
        beyond |= judged.facts(pool, truth)
    except InputError as error:
        right = f"right by {truth.qrels or 'equal captions'}"
        yield Step(file, "measured again", right, str(error))
        return
    rules: str | Protocol
    for protocol, recorded in result.numbers.items():
        if pool.protocol is not None and pool.protocol.name == protocol:
            rules = pool.protocol
        elif distractors:
            rules = Protocol(protocol)
        else:
            rules = truth.protocols([protocol])[0]
        whole = measured.measure(pool, rules, request.ties, settings)
        again = whole.numbers | beyond
        interval = again.pop("interval")
        recorded_hits = result.hits.get(protocol, {})
        yield _numbers_again(file, protocol, recorded, again)
        yield _intervals_again(file, protocol, recorded.get("interval"), interval)
        size = f"{recorded['images']} images"
        again_of = size
        if not _same_hits(recorded_hits, whole.hits):
            again_of = f"{size}, and other hits"
        yield Step(file, f"hits of each image again, {protocol}", size, again_of)


def _numbers_again(
    file: Path, protocol: str, recorded: Mapping[str, Any], again: Mapping[str, Any]
) -> Step:
    numbers = {key: value for key, value in recorded.items() if key != "interval"}
    rsum = f"RSUM {recorded['RSUM']:.1f}"
    rsum_again = rsum
    if not _alike(numbers, again):
        rsum_again = f"RSUM {again['RSUM']:.1f}, and other numbers"
    return Step(file, f"measured again, {protocol}", rsum, rsum_again)


def _intervals_again(file: Path, protocol: str, recorded: Any, again: Any) -> Step:
    ends = _ends(recorded)
    ends_again = ends
    if not _alike(recorded, again):
        ends_again = f"{_ends(again)}, and other intervals"
    return Step(file, f"intervals again, {protocol}", ends, ends_again)


def _same_hits(recorded: Mapping[str, Any], again: Mapping[str, Any]) -> bool:
    """Whether the hits of all captions and of each language's are the same."""
    try:
        languages = recorded.get("languages", {})
        languages_again = again.get("languages", {})
        if languages.keys() != languages_again.keys():
            return False
        pairs = [(recorded, again)]
        pairs += [(languages[name], languages_again[name]) for name in languages]
        return all(ImageHits(hits).equals(ImageHits(hits_again)) for hits, hits_again in pairs)
    except (InputError, AttributeError):  # it was edited into something else
        return False


def _ends(interval: Any) -> str:
    try:
        low, high = interval["RSUM"]
        return f"RSUM {low:.1f} to {high:.1f}"
    except (KeyError, TypeError, ValueError):
        return "no interval"


def _alike(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, except for rounding of numbers."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if one.keys() != other.keys():
            return False
        return all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if len(one) != len(other):
            return False
        return all(map(_alike, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)

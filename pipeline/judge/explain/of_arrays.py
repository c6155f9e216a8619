"""`explain` for a notebook: numpy arrays in, the answer out. Nothing of it imports torch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipeline.foundation.evaluation.metrics import Metrics, evaluate
from pipeline.foundation.evaluation.retrieval import (
    Embeddings,
    Ids,
    KnownRanks,
    Protocol,
    Scores,
    Ties,
    as_similarity,
    mistakes,
    protocol as find,
)
from pipeline.foundation.evaluation.retrieval.protocols import consecutive_captions
from pipeline.foundation.evaluation.retrieval.relevance import as_relevance
from pipeline.foundation.evaluation.retrieval.similarity import vectors_of
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.judge.explain import doubles, printed
from pipeline.judge.explain.differences import Measurement
from pipeline.judge.explain.given import FOLD, Given
from pipeline.judge.explain.search import Explanation, Progress, search
from pipeline.judge.systems.scores import fuse
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.system import System

HITS = ".npz"  # how the name of a file of hits ends


def explain(
    scores: object,
    published: str | Mapping[str, object],
    captions_per_image: int = 5,
    caption_image: object = None,
    captions: Sequence[str] | None = None,
    protocol: str | Protocol | None = None,
    ties: Ties = "expected",
    normalise: bool = False,
    fold: int = FOLD,
    most: int = 3,
    progress: Progress = lambda done, total: None,
) -> Explanation:
    """Search the differences of measurement that people make for those that give published numbers.

    Args:
        scores: The similarities [I images, C captions], as an array or the path of a `.npy` file;
            or a tuple of vectors, [I, D] and [C, D], whose inner products they are; or the path of
            a file of hits. A list of these are seeds of one system, whose mean is measured.
        published: "R@1=58.4", several with commas between or as a dict, or a row of a shipped
            table, see `printed.read`.
        captions_per_image: How many consecutive captions each image has, unless `caption_image` or
            a file of hits says it.
        caption_image: Integers [C], the row of each caption's image, -1 for none.
        captions: The texts of the captions.
        protocol: The rules by which the scores should be measured, a name in `PROTOCOLS` or a
            `Protocol`; None for those of a file of hits, and "all" for others.
        ties: How ties should count.
        normalise: Whether vectors should be divided by their lengths.
        fold: How many images a fold has where the protocol has no folds.
        most: How many differences are tried together at most.
        progress: Called with the number of rankings done so far, and how many there are.

    Returns:
        The numbers of the protocol and of all variants, those that give the published numbers
        first; printed, a table.

    Raises:
        InputError: For arrays that do not fit each other or the protocol, and published numbers
            that no metric can be.

    >>> explain(np.eye(2), "R@1=100.0", captions_per_image=1).references[0].reproduces
    True
    """
    if isinstance(published, Mapping):
        published = ",".join(f"{name}={number}" for name, number in published.items())
    if not isinstance(published, str):
        raise InputError(
            f"published: expected text such as 'R@1=58.4' or a dict, received {published!r:.40}"
        )
    numbers, row = printed.read(published)
    runs = opened(seeds_of(scores))
    sources = list(map(source_of, runs))
    shape = sources[0].shape
    if caption_image is None:
        caption_image = owner_of(sources, captions_per_image)
    owner = as_relevance(np.asarray(caption_image), shape).owner
    if captions is not None and len(captions) != len(owner):
        raise InputError(f"captions: expected {len(owner)} texts, received {len(captions)}")
    rules = rules_of(sources, protocol)
    pools: list[Given] = []
    notes: list[str] = []
    for run, source in zip(runs, sources, strict=True):
        if source.shape != shape:
            raise InputError(
                f"seeds: expected scores of one shape, received {shape}, {source.shape}"
            )
        as_measured = source_of(run, normalise)
        measured = evaluate(as_measured, owner, rules, ties)  # refuses what cannot be ranked
        notes += likely_mistakes(as_measured, owner, measured)
        if pools:
            notes += mistakes.of_two(sources[0], source, owner)
        pool = Given("scores", owner, source, captions, fold=fold_of(rules, shape[0], fold))
        pools.append(replace(pool, otherwise=doubles.readings(pool)))
    given = replace(pools[0], others=tuple(pools[1:]))
    base = Measurement.by(rules, ties, normalise)
    explanation = search({"": given}, base, rules, numbers, most, progress, row)
    return replace(explanation, notes=(*dict.fromkeys(notes), *explanation.notes))


def seeds_of(system: object) -> list[object]:
    """The scores of each seed of a system, which is a list of them, or those of one."""
    if not isinstance(system, list):
        return [system]
    if not system:
        raise InputError("expected the scores of one seed or of several, received an empty list")
    return system


def opened(runs: Sequence[object]) -> list[object]:
    """The runs, of which files of hits are read: those with ids in the order of the first one that
    has any.
    """
    read: list[object] = []
    first: System | None = None
    for run in runs:
        if not isinstance(run, str | Path) or Path(run).suffix != HITS:
            read.append(run)
            continue
        system = open_system(str(run))
        if not isinstance(system.scores, KnownRanks):
            raise _no_array(run)
        refuse_judged(system)
        if system.has_ids and first is not None:
            system.require_owners_of(first)
            system = fuse.in_order_of(first, system)
        elif system.has_ids:
            first = system
        read.append(system.scores)
    return read


def refuse_judged(system: System) -> None:
    """Refuse hits by other right answers than each caption's own image, which are not tried."""
    if system.hits is not None and system.relevance is not None:
        raise InputError(
            f"{system.name}: holds ranks by {system.hits.right}, and only those of each caption's own image are "
            "taken here; give the scores, or use `pipeline evaluate` or `pipeline compare`"
        )


def owner_of(sources: Sequence[Scores], captions_per_image: int) -> Ids:
    """The row of each caption's image, int64 [C]: that of the first file of hits, or as many
    consecutive captions of each.
    """
    for source in sources:
        if isinstance(source, KnownRanks):
            return source.relevance.owner
    return consecutive_captions(sources[0].shape, captions_per_image)


def rules_of(sources: Sequence[Scores], asked: str | Protocol | None) -> Protocol:
    """The protocol that is asked for, else that of the first file of hits, else all in one pool."""
    if asked is not None:
        return find(asked)
    for source in sources:
        if isinstance(source, KnownRanks):
            return source.rules
    return find("all")


def likely_mistakes(scores: Scores, owner: object, measured: Metrics) -> Iterator[str]:
    """Notes on the scores of arrays, as the commands have them. owner: the row of each caption's
    image.
    """
    vectors = vectors_of(scores)
    if vectors:
        yield from mistakes.of_vectors(*vectors)
    relevance = as_relevance(np.asarray(owner), scores.shape)
    yield from mistakes.of_scores(scores, relevance, measured.ranks)


def source_of(scores: object, normalise: bool = False) -> Scores:
    """The scores of an array, a file or a tuple of vectors; of files, those that need no reader of
    the commands.
    """
    if isinstance(scores, tuple) and len(scores) == 2:
        return Embeddings(*scores, normalise=normalise)
    if isinstance(scores, str | Path):
        path = Path(scores)
        if path.suffix != ".npy" and not path.is_dir():
            raise _no_array(scores)
    return as_similarity(scores)


def _no_array(path: str | Path) -> InputError:
    return InputError(
        f"{path}: from Python give arrays, or the path of a .npy file, a zarr array or a file of hits; the "
        "commands read other files"
    )


def fold_of(rules: Protocol, images: int, otherwise: int = FOLD) -> int:
    """How many images a fold has; InputError where that is none."""
    if otherwise < 1:
        raise InputError(f"fold: expected 1 or more images, received {otherwise}")
    if rules.folds > images:
        raise InputError(
            f"protocol {rules.name}: {counted(images, 'image')} cannot be cut into {rules.folds} folds of one size"
        )
    if rules.folds > 1:
        return images // rules.folds
    return otherwise

"""The systems of one task: their values with intervals, every two tested, ranks and letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from pipeline.extensions.board.tasks import Ranking
from pipeline.foundation.evaluation.metrics import Metrics
from pipeline.foundation.evaluation.metrics.base import ByImage, by_image
from pipeline.foundation.evaluation.metrics.standard import folds_of
from pipeline.foundation.evaluation.statistics import LEVEL, letters
from pipeline.foundation.evaluation.statistics.all_pairs import all_pairs
from pipeline.foundation.evaluation.statistics.rank_intervals import rank_intervals
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Evaluate
from pipeline.judge.systems.scores.system import IMAGES_AND_CAPTIONS, Part
from stages.compare import Alike, View
from stages.progress import Progress


def views_of(alike: Alike) -> Iterator[tuple[str, View, Sequence[Sequence[Metrics]]]]:
    """What of a task's files is ranked by itself, with what tells it from the others: each
    language, or all captions where there is one or none; by each protocol.
    """
    languages = {view.label.get("language") for view in alike.views} - {None}
    protocols = {ranked[0][0].protocol for ranked in alike.ranked}
    for view, ranked in zip(alike.views, alike.ranked, strict=True):
        language = view.label.get("language")
        if (language is not None) != (len(languages) > 1):
            continue
        words = []
        if language is not None:
            words.append(language)
        if language is None and len(protocols) > 1:
            words.append(ranked[0][0].protocol)
        yield " ".join(words), view, ranked


def measure(
    name: str,
    view: View,
    ranked: Sequence[Sequence[Metrics]],
    ranking: Ranking,
    how: Evaluate,
) -> dict[str, Any]:
    """Rank the systems of a view, as plain JSON values.

    Args:
        name: Of the task.
        view: The systems, each with its seeds.
        ranked: What was measured of them.
        ranking: The metric.
        how: The number of swaps and their seed.

    Returns:
        A task of the board, whose systems are numbered in the order of the view.

    Raises:
        InputError: For a metric that these systems do not have.
    """
    found = _of_systems(name, view, ranked, ranking, how)
    first = ranked[0][0]
    parts = np.stack([of_system.parts for of_system in found])
    count = len(found)
    tested = all_pairs(parts[:, None], how.resamples, how.seed)
    difference = tested.difference[:, :, 0]
    adjusted = tested.adjusted[:, :, 0]
    better = 1
    if ranking.metric.less_is_better:
        better = -1
    intervals = rank_intervals(better * difference, adjusted, LEVEL)
    pairs = list(combinations(range(count), 2))
    differ = {pair for pair in pairs if adjusted[pair] < LEVEL}
    lettered = letters([better * of_system.interval.value for of_system in found], differ)
    systems = []
    for system, of_system in enumerate(found):
        interval = of_system.interval
        systems.append(
            {
                "system": system,
                "value": interval.value,
                "interval": [interval.low, interval.high],
                "rank": [int(intervals.best[system]), int(intervals.worst[system])],
                "letters": lettered[system],
            }
        )
    return {
        "name": name,
        "unit": name,
        "metric": _called(ranking, first),
        "less_is_better": ranking.metric.less_is_better,
        "images": first.images,
        "captions": first.captions,
        "protocol": first.protocol,
        "ties": first.ties,
        "sides": view.label.get("sides", [*IMAGES_AND_CAPTIONS]),
        "systems": systems,
        "pairs": {
            "difference": [float(difference[pair]) for pair in pairs],
            "p": [float(tested.p[pair][0]) for pair in pairs],
            "adjusted": [float(adjusted[pair]) for pair in pairs],
        },
        "resolution": 1 / (1 + how.resamples),
    }


def _of_systems(
    name: str,
    view: View,
    ranked: Sequence[Sequence[Metrics]],
    ranking: Ranking,
    how: Evaluate,
) -> list[ByImage]:
    """The metric of each system, the mean over its seeds."""
    directions = _directions(name, ranked[0][0], ranking)
    found = []
    with Progress(f"measure {name}", "system", len(ranked)) as bar:
        for parts, of_seeds in zip(view.groups, ranked, strict=True):
            runs = []
            for part, metrics in zip(parts, of_seeds, strict=True):
                runs.append(_folds(part, metrics, ranking, how))
            found.append(by_image(ranking.metric, runs, directions))
            bar.update()
    return found


def _folds(part: Part, metrics: Metrics, ranking: Ranking, how: Evaluate) -> list[Any]:
    pool = part.system
    megabytes = how.block_megabytes
    return folds_of([ranking.metric], pool.scores, pool.truth, metrics, part.rules, megabytes)


def _directions(name: str, first: Metrics, ranking: Ranking) -> Sequence[str]:
    """The directions that are measured."""
    if not ranking.direction:
        return first.directions
    if ranking.direction not in first.directions:
        raise InputError(
            f"--metric {ranking.direction} {ranking.metric}: the systems of {name} rank "
            f"{first.directions[0]} alone"
        )
    return [ranking.direction]


def _called(ranking: Ranking, first: Metrics) -> str:
    """The metric with its direction, where it is of one of two."""
    if ranking.direction:
        return f"{ranking.direction} {ranking.metric}"
    if ranking.metric.summed is None and len(first.directions) > 1:
        return f"{ranking.metric}, both directions"
    return str(ranking.metric)


def over_seeds(names: Mapping[str, Sequence[object]]) -> list[str]:
    """What is said of systems with several seeds. names: each system with its runs."""
    counts: dict[int, list[str]] = {}
    for name, runs in names.items():
        counts.setdefault(len(runs), []).append(name)
    return [
        f"{', '.join(systems)}: mean of {count} seeds, query by query; intervals and p are over images, not seeds"
        for count, systems in counts.items()
        if count > 1
    ]

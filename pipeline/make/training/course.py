"""The course of a training: what the loop asks of a network, its batches, its step and its
measurement on val.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from statistics import fmean
from typing import Any, Protocol, TypeAlias

from pipeline.foundation.evaluation.metrics import STATISTICS, Metrics, evaluate
from pipeline.foundation.evaluation.retrieval import Embeddings, Singles, as_similarity, select
from pipeline.foundation.evaluation.retrieval.owners import renumbered
from pipeline.foundation.evaluation.statistics.intervals import divide
from pipeline.foundation.manifest import Split
from pipeline.make.heads.base import HeadNetwork
from pipeline.make.heads.objectives import Objective
from pipeline.make.training.optimizer import Update

Row: TypeAlias = dict[str, float]


class Batched(Protocol):
    """What the steps of an epoch read."""

    def __len__(self) -> int:
        """The number of steps of an epoch."""

    def epoch(self, number: int) -> Iterator[Any]:
        """The batches of the epoch of this number, from 0, one a step."""


class Course(ABC):
    """A network to train, and how."""

    model: HeadNetwork  # the network
    update: Update  # optimizer, precision, processes, pieces
    objective: Objective | None  # what trains embeddings; None if none are trained
    batch_size: int  # pairs of a step
    batches: Batched  # what is read for each step of an epoch
    # Updates the weights from what was read; gives the log of the step.
    step: Callable[[Any], dict[str, float]]

    def __len__(self) -> int:
        return len(self.batches)

    def start_epoch(self, number: int) -> None:  # noqa: B027  # most need none
        """Prepare for the epoch of this number, from 0; by default nothing."""

    @abstractmethod
    def measured(self) -> Row:
        """The metrics on val that select the best epoch, `STATISTICS`."""


def of_scores(similarity: Embeddings | Singles, val: Split) -> Row:
    """Measure val: with several languages, the mean over the languages."""
    if val.languages is None:
        return row(evaluate(similarity, val.caption_image))
    source = as_similarity(similarity)
    parts = divide(val.caption_image, source.shape, val.languages)
    rows = []
    for images, captions in parts.values():
        owner = renumbered(val.caption_image[captions], images, len(val.image_ids))
        rows.append(row(evaluate(select(source, images, captions), owner)))
    return means(rows)


def means(rows: Collection[Row]) -> Row:
    """The mean of each metric over rows."""
    first, *_ = rows
    return {name: _mean(name, rows) for name in first}


def _mean(name: str, rows: Collection[Row]) -> float:
    return fmean(of_part[name] for of_part in rows)


def row(metrics: Metrics) -> Row:
    """The metrics as a row of the history."""
    return {str(statistic): metrics[statistic] for statistic in STATISTICS}

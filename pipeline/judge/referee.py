"""The referee in a notebook: numpy arrays in, a judgement out. Nothing of it imports torch."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pipeline.foundation.evaluation import metrics
from pipeline.foundation.evaluation.retrieval import (
    Protocol,
    Scores,
    Ties,
    mistakes,
)
from pipeline.foundation.evaluation.statistics import contrast, interval
from pipeline.judge.explain.of_arrays import (
    likely_mistakes,
    opened,
    owner_of,
    rules_of,
    seeds_of,
    source_of,
)
from pipeline.judge.tables import compared, evaluated

SAMPLES = 1000  # swaps of a paired test, at least; `evaluate.resamples` of the shipped settings


class Judgement(dict[str, Any]):
    """What a command gives with --json; printed, what it prints."""

    def __init__(self, values: dict[str, Any], text: str) -> None:
        super().__init__(values)
        self.text = text

    def __str__(self) -> str:
        return self.text


def evaluate(
    scores: object,
    captions_per_image: int = 5,
    caption_image: object = None,
    protocol: str | Protocol | None = None,
    ties: Ties = "expected",
    normalise: bool = False,
) -> Judgement:
    """Measure recalls, ranks and RSUM with 95 % intervals over images.

    Args:
        scores: The similarities [I images, C captions], as an array or the path of a `.npy` file;
            or a tuple of vectors, [I, D] and [C, D], whose inner products they are; or the path of
            a file of hits.
        captions_per_image: How many consecutive captions each image has, unless `caption_image` or
            a file of hits says it.
        caption_image: Integers [C], the row of each caption's image, -1 for none.
        protocol: A name in `PROTOCOLS`, or a `Protocol`; None for that of a file of hits, and "all"
            for others.
        ties: How ties count, see `pipeline.foundation.evaluation.metrics.evaluate`.
        normalise: Whether vectors are divided by their lengths.

    Returns:
        The numbers as `pipeline evaluate --json` has them, with notes on likely mistakes; printed,
        a table.

    Raises:
        InputError: For arrays that do not fit each other or the protocol, and for NaN or infinity.

    >>> import numpy as np
    >>> evaluate(np.eye(2), captions_per_image=1)["RSUM"]
    600.0
    """
    (system,) = _measured([scores], captions_per_image, caption_image, protocol, ties, normalise)
    numbers = system.metrics.as_dict()
    numbers["interval"] = interval(system.metrics)
    numbers["notes"] = list(_notes(system))
    return _judgement(numbers, evaluated.to_text([("", numbers)]))


def compare(
    first: object,
    second: object,
    captions_per_image: int = 5,
    caption_image: object = None,
    protocol: str | Protocol | None = None,
    ties: Ties = "expected",
    normalise: bool = False,
    samples: int = SAMPLES,
    seed: int = 0,
    margin: float | None = None,
) -> Judgement:
    """Test two systems against each other on the same queries, see `pipeline compare`.

    Args:
        first: The scores of the first system, see `evaluate`; several seeds of it as a list of
            scores.
        second: The scores of the second one, likewise; images and captions have the order of the
            first, unless both are files of hits with ids.
        captions_per_image: See `evaluate`.
        caption_image: See `evaluate`.
        protocol: See `evaluate`.
        ties: See `evaluate`.
        normalise: See `evaluate`.
        samples: The least number of swaps of a test.
        seed: Of the swaps.
        margin: Also say whether the systems are equal within so many percent points of a recall,
            under `margin` of each number.

    Returns:
        The contrast of each recall and RSUM, second minus first, with its interval, p, and what
        would make it significant where it is not, and notes on likely mistakes; printed, a table.

    Raises:
        InputError: As `evaluate`, for systems of different shapes, and for a margin that is not
            above 0 and below 100.

    >>> import numpy as np
    >>> compare(np.eye(2), np.eye(2), captions_per_image=1)["RSUM"]["difference"]
    0.0
    """
    of_first = seeds_of(first)
    runs = _measured(
        [*of_first, *seeds_of(second)],
        captions_per_image,
        caption_image,
        protocol,
        ties,
        normalise,
    )
    first_runs = runs[: len(of_first)]
    second_runs = runs[len(of_first) :]
    first_metrics = [run.metrics for run in first_runs]
    second_metrics = [run.metrics for run in second_runs]
    pools = [[(first_metrics, second_metrics)]]
    (values,) = contrast.together(pools, samples, seed, margin=margin)
    text = compared.to_text(["first", "second"], [values])
    reference, *others = runs
    notes: list[str] = []
    for run in runs:
        notes += _notes(run)
    for run in others:
        notes += mistakes.of_two(reference.scores, run.scores, run.owner)
    return _judgement(values[0] | {"notes": notes}, text)


def _judgement(values: dict[str, Any], text: str) -> Judgement:
    notes = [f"note: {note}" for note in values["notes"]]
    return Judgement(values, "\n".join([text, *notes]))


class _System(NamedTuple):
    scores: Scores
    owner: Any  # [C]: the row of each caption's image
    metrics: metrics.Metrics


def _measured(
    systems: Sequence[object],
    captions_per_image: int,
    caption_image: object,
    protocol: str | Protocol | None,
    ties: Ties,
    normalise: bool,
) -> list[_System]:
    """Systems by one protocol, which of files of hits is theirs."""
    sources = [source_of(scores, normalise) for scores in opened(systems)]
    owner = caption_image
    if owner is None:
        owner = owner_of(sources, captions_per_image)
    rules = rules_of(sources, protocol)
    measured = []
    for source in sources:
        measured.append(_System(source, owner, metrics.evaluate(source, owner, rules, ties)))
    return measured


def _notes(system: _System) -> Iterator[str]:
    """The likely mistakes of one system, as the commands note them."""
    yield from likely_mistakes(system.scores, system.owner, system.metrics)

"""The search: which differences, alone or together, give the published numbers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from typing import TypeAlias

import numpy as np

from pipeline.evaluation.retrieval import Protocol
from pipeline.report.published import PublishedRow
from pipeline.studies.explain.differences import DIFFERENCES, STEPS, Difference, Measurement
from pipeline.studies.explain.explained import NEAR, Explanation, Shown, Variant
from pipeline.studies.explain.given import Given
from pipeline.studies.explain.measuring import WAYS, Measuring, Progress
from pipeline.studies.explain.printed import Printed, with_direction

# Numbers that are drawn near the published ones.
DRAWN = 20_000
# Together at most so many that change the ranking: more would rank the scores hundreds of times.
RANKINGS = 2
# Scores of so many cells take a second or more for each two that do.
MANY = 20_000_000

Choice: TypeAlias = tuple[Difference, ...]


def search(
    splits: Mapping[str, Given],
    base: Measurement,
    rules: Protocol,
    published: Sequence[Printed],
    most: int = 3,
    progress: Progress = lambda done, total: None,
    row: PublishedRow | None = None,
) -> Explanation:
    """Try differences one at a time and two together; more only while nothing gives the published
    numbers.
    """
    known, not_tried = _possible(splits, base)
    measuring, given = Measuring(splits), splits[base.split]
    rules.parts(given.owner, given.images)  # refuses a pool that the rules are not for
    ways = WAYS if any(each.is_open for each in published) else ("",)
    if all(
        each.is_open or each.metric.summed is not None for each in published
    ):  # both directions are tried
        known = [each for each in known if "exchanged" not in each.changed(base)]
    searches = [_Search(measuring, base, with_direction(published, way)) for way in ways]
    for counts in ((0, 1), (2,), (3,))[:most]:
        choices = [
            [choice for count in counts for choice in of_way.choices(known, count)]
            for of_way in searches
        ]
        measuring.rank(
            [
                of_way.measurement(choice)
                for of_way, each in zip(searches, choices, strict=True)
                for choice in each
            ],
            progress,
        )
        for of_way, each in zip(searches, choices, strict=True):
            of_way.measure(each)
        if counts[-1] > 1 and any(of_way.is_explained for of_way in searches):
            break
    facts = {"folds": given.folds, "size": given.fold}
    variants = [
        Variant(
            tuple(each.words.format(**facts) for each in choice),
            shown,
            *of_way.distance(shown),
            way,
        )
        for way, of_way in zip(ways, searches, strict=True)
        for choice, shown in of_way.shown.items()
    ]
    variants.sort(
        key=lambda each: (
            bool(each.differences),
            not each.reproduces,
            each.reproduces and len(each.differences),
            each.distance,
            len(each.differences),
        )
    )
    return Explanation(
        given.name,
        given.shape,
        rules.name,
        tuple(published),
        tuple(variants),
        {lacking: tuple(words) for lacking, words in not_tried.items()},
        _by_chance(published, variants),
        tuple(doubt.note for doubt in row.doubts) if row else (),
    )


def _possible(
    splits: Mapping[str, Given], base: Measurement
) -> tuple[list[Difference], dict[str, list[str]]]:
    """The differences that can be tried, and those that need what is not known."""
    known, not_tried = [], dict[str, list[str]]()
    for each in DIFFERENCES:
        wanted = replace(base, **dict(each.choices))
        if not each.changed(base):
            continue
        lacking = (
            "scores of other splits"
            if wanted.split not in splits
            else splits[wanted.split].lacks(wanted)
        )
        if lacking:
            not_tried.setdefault(lacking, []).append(each.words)
        elif not splits[wanted.split].is_idle(wanted, base):
            known.append(each)
    return known, not_tried


# The choices for which scores are ranked again.
RANKED = {*STEPS["vectors"], *STEPS["scores"], *STEPS["pool"], "hits"}


class _Search:
    """The variants of one reading of the published numbers."""

    def __init__(
        self, measuring: Measuring, base: Measurement, published: Sequence[Printed]
    ) -> None:
        self.measuring, self.base, self.published = measuring, base, published
        self.shown: dict[Choice, Shown] = {}
        self._measured: set[Measurement] = set()

    @property
    def is_explained(self) -> bool:
        return any(not self.distance(shown)[0] for shown in self.shown.values())

    def choices(self, known: Sequence[Difference], together: int) -> Iterator[Choice]:
        """So many differences at a time that can be made and may reach the published numbers."""
        for choice in combinations(known, together):
            fields = [name for each in choice for name in each.changed(self.base)]
            if (
                len(fields) == len(set(fields))
                and self._is_possible(choice)
                and self._is_near(choice)
            ):
                yield choice

    def measurement(self, choice: Choice) -> Measurement:
        """The protocol with some differences."""
        return replace(
            self.base,
            **{
                name: value
                for each in choice
                for name, value in each.choices
                if name in each.changed(self.base)
            },
        )

    def measure(self, choices: Iterable[Choice]) -> None:
        """Keep choices each of whose differences changes a printed number."""
        for choice in choices:
            shown, wanted = self._shown(choice), self.measurement(choice)
            if (
                shown is None or wanted in self._measured
            ):  # two differences may be a third one together
                continue
            self._measured.add(wanted)
            if all(
                self._shown(tuple(each for each in choice if each is not one)) != shown
                for one in choice
            ):
                self.shown[choice] = shown

    def distance(self, shown: Shown) -> tuple[Decimal, int]:
        """The largest difference from a published number, and how many are equal."""
        apart = [
            abs(one - printed.number) for one, printed in zip(shown, self.published, strict=True)
        ]
        return max(apart), apart.count(Decimal(0))

    def _is_possible(self, choice: Choice) -> bool:
        wanted = self.measurement(choice)
        given = self.measuring.splits.get(wanted.split)
        return (
            given is not None and not given.lacks(wanted) and not given.is_idle(wanted, self.base)
        )

    def _is_near(self, choice: Choice) -> bool:
        """Whether the scores are worth ranking for two differences together: whether the sum of
        their effects is near.

        What two do together may differ from this sum by twice the smaller effect.
        """
        ranked = [each for each in choice if each.changed(self.base) & RANKED]
        if (
            len(ranked) != RANKINGS
            or max(each.cells for each in self.measuring.splits.values()) < MANY
        ):
            return len(ranked) <= RANKINGS
        base, *alone = self._shown(()), *(self._shown((each,)) for each in ranked)
        if base is None or None in alone:
            return False
        for printed, start, *ends in zip(self.published, base, *filter(None, alone), strict=True):
            effects = [end - start for end in ends]
            reach = _near(printed) + 2 * min(map(abs, effects))
            if abs(start + sum(effects) - printed.number) > reach:
                return False
        return True

    def _shown(self, choice: Choice) -> Shown | None:
        wanted = self.measurement(choice)
        values = [
            self.measuring.number(wanted, each.metric, each.direction) for each in self.published
        ]
        return (
            None
            if None in values
            else tuple(
                each.rounded(value, wanted.rounding)
                for each, value in zip(self.published, values, strict=True)
                if value is not None
            )
        )


def _near(printed: Printed) -> Decimal:
    """How far from a published number others are near it."""
    return NEAR * Decimal(printed.metric.most if printed.metric.is_share else 1)


def _by_chance(published: Sequence[Printed], variants: Iterable[Variant]) -> tuple[float, ...]:
    """The share of numbers drawn near the published ones that variants with at most 0, 1, 2, …
    differences have.
    """
    units = [Decimal(1).scaleb(int(each.number.as_tuple().exponent)) for each in published]
    reach = [max(1, int(_near(each) / unit)) for each, unit in zip(published, units, strict=True)]
    draw = np.random.default_rng(0)
    drawn = np.stack([draw.integers(-far, far, size=DRAWN, endpoint=True) for far in reach], axis=1)
    seen: dict[tuple[int, ...], int] = {}
    most = 0
    for each in variants:
        steps = tuple(
            int((number - printed.number) / unit)
            for number, printed, unit in zip(each.numbers, published, units, strict=True)
        )
        seen[steps] = min(seen.get(steps, len(each.differences)), len(each.differences))
        most = max(most, len(each.differences))
    needed = np.array([seen.get(steps, most + 1) for steps in map(tuple, drawn.tolist())])
    return tuple(float((needed <= count).mean()) for count in range(most + 1))

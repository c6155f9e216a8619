"""The search: which differences, alone or together, give the published numbers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

from pipeline.evaluation.retrieval import Protocol
from pipeline.report.published import PublishedRow
from pipeline.studies.explain.differences import DIFFERENCES, STEPS, Difference, Measurement
from pipeline.studies.explain.given import Given
from pipeline.studies.explain.measuring import WAYS, Measuring
from pipeline.studies.explain.printed import Printed, with_direction

# Numbers that are drawn near the published ones, and how far from them at most: points, ranks, or of a sum six times.
DRAWN, NEAR = 20_000, 2
# Together at most so many that change the ranking: more would rank the scores hundreds of times.
RANKINGS = 2

Progress: TypeAlias = Callable[[int, int], object]
Shown: TypeAlias = tuple[Decimal, ...]
Choice: TypeAlias = tuple[Difference, ...]


class Variant(NamedTuple):
    """One way to measure, and what it gives."""

    differences: tuple[str, ...]  # In words; () for the protocol itself
    numbers: Shown  # Rounded as the published ones are, in their order
    distance: Decimal  # The largest difference from a published number
    equal: int  # How many are the published numbers
    direction: str  # The direction of numbers that do not say theirs; "" if they do

    @property
    def reproduces(self) -> bool:
        """Whether it gives all published numbers."""
        return not self.distance


@dataclass(frozen=True)
class Explanation:
    """What was tried to explain published numbers."""

    name: str  # The scores
    shape: tuple[int, int]  # Images and captions
    protocol: str
    published: tuple[Printed, ...]
    variants: tuple[Variant, ...]  # The protocol itself first, then all that were tried, those that reproduce first
    not_tried: Mapping[str, tuple[str, ...]]  # What is not known -> the differences that need it, in words
    by_chance: tuple[float, ...]  # The share of numbers nearby that at most 0, 1, 2, … differences would explain too
    notes: tuple[str, ...] = ()  # Doubts about the published numbers

    def __str__(self) -> str:
        from pipeline.studies.explain.explained import to_text

        return to_text(self)

    @property
    def references(self) -> tuple[Variant, ...]:
        """The protocol's own numbers, for each direction that may be meant."""
        return tuple(each for each in self.variants if not each.differences)

    @property
    def tried(self) -> tuple[Variant, ...]:
        """All with a difference."""
        return tuple(each for each in self.variants if each.differences)

    @property
    def reproducing(self) -> tuple[Variant, ...]:
        """Those that give all published numbers; () if nothing explains them."""
        return tuple(each for each in self.variants if each.reproduces)


def search(splits: Mapping[str, Given], base: Measurement, rules: Protocol, published: Sequence[Printed], most: int = 3,
           progress: Progress = lambda done, total: None, row: PublishedRow | None = None) -> Explanation:
    """Try differences one at a time and two together; more only while nothing gives the published numbers."""
    known, not_tried = _possible(splits, base)
    measuring, given = Measuring(splits), splits[base.split]
    rules.parts(given.owner, given.images)  # refuses a pool that the rules are not for
    ways = WAYS if any(each.is_open for each in published) else ("",)
    if all(each.is_open or each.metric.summed is not None for each in published):  # both directions are tried
        known = [each for each in known if "exchanged" not in each.changed(base)]
    searches = [_Search(measuring, base, with_direction(published, way)) for way in ways]
    for counts in (range(min(most, 2) + 1), *((count,) for count in range(3, most + 1))):
        choices = [choice for count in counts for choice in _choices(known, base, count)]
        wanted = [each for of_way in searches for each in of_way.wanted(choices)]
        total = measuring.count(wanted)
        measuring.rank(wanted, partial(_tell, progress, total))
        for of_way in searches:
            of_way.measure(choices)
        if any(of_way.is_explained for of_way in searches):
            break
    facts = {"folds": given.folds, "size": given.fold}
    variants = [Variant(tuple(each.words.format(**facts) for each in choice), shown, *of_way.distance(shown), way)
                for way, of_way in zip(ways, searches, strict=True) for choice, shown in of_way.shown.items()]
    variants.sort(key=lambda each: (bool(each.differences), not each.reproduces, each.reproduces and len(
        each.differences), each.distance, len(each.differences)))
    return Explanation(given.name, given.shape, rules.name, tuple(published), tuple(variants), {
        lacking: tuple(words) for lacking, words in not_tried.items()}, _by_chance(published, variants),
        tuple(doubt.note for doubt in row.doubts) if row else ())


def _tell(progress: Progress, total: int, done: int) -> None:
    progress(done, total)


def _possible(splits: Mapping[str, Given], base: Measurement) -> tuple[list[Difference], dict[str, list[str]]]:
    """The differences that can be tried, and those that need what is not known."""
    known, not_tried = [], dict[str, list[str]]()
    for each in DIFFERENCES:
        wanted = each.change(base)
        if not each.changed(base):
            continue
        lacking = "scores of other splits" if wanted.split not in splits else splits[wanted.split].lacks(wanted)
        if lacking:
            not_tried.setdefault(lacking, []).append(each.words)
        elif not splits[wanted.split].is_idle(wanted):
            known.append(each)
    return known, not_tried


def _choices(known: Sequence[Difference], base: Measurement, together: int) -> Iterator[Choice]:
    """So many differences at a time, no two of which are about the same choice."""
    for choice in combinations(known, together):
        fields = [name for each in choice for name in each.changed(base)]
        rankings = sum(bool(each.changed(base) & RANKED) for each in choice)
        if len(fields) == len(set(fields)) and rankings <= RANKINGS:
            yield choice


# The choices for which scores are ranked again.
RANKED = {*STEPS["vectors"], *STEPS["scores"], *STEPS["pool"], "hits"}


class _Search:
    """The variants of one reading of the published numbers."""

    def __init__(self, measuring: Measuring, base: Measurement, published: Sequence[Printed]) -> None:
        self.measuring, self.base, self.published = measuring, base, published
        self.shown: dict[Choice, Shown] = {}

    @property
    def is_explained(self) -> bool:
        return any(not self.distance(shown)[0] for shown in self.shown.values())

    def wanted(self, choices: Iterable[Choice]) -> Iterator[Measurement]:
        """The measurements of those choices of which a part has an effect."""
        for choice in choices:
            measurement = self._of(choice)
            if self._is_possible(measurement):
                yield measurement

    def measure(self, choices: Iterable[Choice]) -> None:
        """Keep choices each of whose differences changes a printed number."""
        for choice in choices:
            measurement = self._of(choice)
            shown = self._shown(measurement) if self._is_possible(measurement) else None
            if shown is not None and all(self._without(choice, each) != shown for each in choice):
                self.shown[choice] = shown

    def distance(self, shown: Shown) -> tuple[Decimal, int]:
        """The largest difference from a published number, and how many are equal."""
        apart = [abs(one - printed.number) for one, printed in zip(shown, self.published, strict=True)]
        return max(apart), apart.count(Decimal(0))

    def _of(self, choice: Choice) -> Measurement:
        measurement = self.base
        for each in choice:
            measurement = each.change(measurement)
        return measurement

    def _is_possible(self, measurement: Measurement) -> bool:
        given = self.measuring.splits[measurement.split]
        return not given.lacks(measurement) and not given.is_idle(measurement)

    def _without(self, choice: Choice, left_out: Difference) -> Shown | None:
        return self._shown(self._of(tuple(each for each in choice if each is not left_out)))

    def _shown(self, measurement: Measurement) -> Shown | None:
        values = [self.measuring.number(measurement, each.metric, each.direction) for each in self.published]
        return None if None in values else tuple(
            each.rounded(value, measurement.rounding) for each, value in zip(self.published, values, strict=True)
            if value is not None)


def _by_chance(published: Sequence[Printed], variants: Iterable[Variant]) -> tuple[float, ...]:
    """The share of numbers drawn near the published ones that variants with at most 0, 1, 2, … differences have."""
    units = [Decimal(1).scaleb(int(each.number.as_tuple().exponent)) for each in published]
    reach = [max(1, int(NEAR * (each.metric.most if each.metric.is_share else 1) / float(unit)))
             for each, unit in zip(published, units, strict=True)]
    draw = np.random.default_rng(0)
    drawn = np.stack([draw.integers(-far, far, size=DRAWN, endpoint=True) for far in reach], axis=1)
    seen: dict[tuple[int, ...], int] = {}
    most = 0
    for each in variants:
        steps = tuple(int((number - printed.number) / unit)
                      for number, printed, unit in zip(each.numbers, published, units, strict=True))
        seen[steps] = min(seen.get(steps, len(each.differences)), len(each.differences))
        most = max(most, len(each.differences))
    needed = np.array([seen.get(steps, most + 1) for steps in map(tuple, drawn.tolist())])
    return tuple(float((needed <= count).mean()) for count in range(most + 1))

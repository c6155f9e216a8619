"""The search: which differences, alone or together, give the published numbers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from itertools import chain, combinations
from typing import Any, TypeAlias

import numpy as np

from pipeline.foundation.evaluation.metrics import TASKS
from pipeline.foundation.evaluation.metrics.kinds import Hit, RSum
from pipeline.foundation.evaluation.retrieval import Protocol
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.judge.explain.differences import (
    DIFFERENCES,
    FAMILIES,
    READINGS,
    STEPS,
    Difference,
    Measurement,
    of_part,
)
from pipeline.judge.explain.explained import (
    NEAR,
    Bounds,
    Coverage,
    Explanation,
    Sampled,
    Shown,
    Variant,
)
from pipeline.judge.explain.given import SCORES, WAYS, Given
from pipeline.judge.explain.measuring import Measuring, Progress
from pipeline.judge.explain.printed import Printed, with_direction
from pipeline.judge.tables.published import PublishedRow

# Numbers that are drawn near the published ones.
DRAWN = 20_000
# Together at most so many that change the ranking: more would rank the scores hundreds of times.
RANKINGS = 2
# How many pairs of differences are ranked together, those that come nearest by the sum of their
# effects: as many as have so many cells, within these bounds.
CELLS_TOGETHER = 200_000_000
LEAST_TOGETHER = 12
MOST_TOGETHER = 60

# Published shares that the measured ones exceed so many times are fractions: half of the way, in
# factors, from the number to a hundred times it.
FRACTION = 10

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
    given = splits[base.split]
    rules.parts(given.owner, given.images)  # refuses a pool that the rules are not for
    metrics = [printed.metric for printed in published]
    needs_every = _may_be_another(published, given)
    measuring = Measuring(splits, needs_every or any(each.asks_for_every for each in metrics))
    ways = _ways(measuring, base, published)
    notes: list[str] = []
    if row is not None:
        notes = [doubt.note for doubt in row.doubts]
    if _are_fractions(measuring, base, published, ways):
        published = [printed.in_percent() for printed in published]
        numbers = ", ".join(map(str, published))
        notes.append(f"The published numbers are read as fractions, in percent {numbers}.")
    known, not_tried = _possible(measuring, base, published, ways)
    notes += _not_read(given)
    searches = [_Search(measuring, base, published, way) for way in ways]
    _try(searches, known, most, progress)
    variants: list[Variant] = []
    for of_way in searches:
        variants += of_way.variants(given)
    variants.sort(key=_nearness)
    return Explanation(
        name=given.name,
        shape=given.shape,
        sides=given.sides,
        protocol=rules.name,
        published=tuple(published),
        sampled=tuple(
            chain.from_iterable(
                beside_measured(measuring, base, of_way.published) for of_way in searches
            )
        ),
        variants=tuple(variants),
        bounds=tuple(chain.from_iterable(of_way.bounds(known, given) for of_way in searches)),
        not_tried={
            lacking: tuple(difference.words for difference in differences)
            for lacking, differences in not_tried.items()
        },
        families=tuple(_families(base, known, not_tried, given)),
        differences=len(known),
        together=most,
        is_pruned=any(of_way.is_pruned for of_way in searches),
        by_chance=_by_chance(published, variants),
        notes=tuple(notes),
    )


def _are_fractions(
    measuring: Measuring, base: Measurement, published: Sequence[Printed], ways: Sequence[str]
) -> bool:
    """Whether all shares may be from 0 to 1, and each measured one is nearer to a hundred times the
    published one than to itself.
    """
    shares = [printed for printed in published if printed.metric.is_share]
    if not shares or not all(printed.may_be_fraction for printed in shares):
        return False
    for way in ways:
        for printed in with_direction(shares, way):
            measured = measuring.number(base, printed.metric, printed.direction)
            if measured is None or measured <= FRACTION * float(printed.number):
                return False
    return True


def _ways(measuring: Measuring, base: Measurement, published: Sequence[Printed]) -> tuple[str, ...]:
    """The directions that numbers which do not say theirs may be of, ("",) where all say it.

    Raises:
        InputError: If a number is of a direction that is not ranked, or its ranks are not listed.
    """
    given = measuring.splits[base.split]
    ways: tuple[str, ...] = ("",)
    if any(printed.is_open for printed in published):
        ways = given.ways
    for printed in chain.from_iterable(with_direction(published, way) for way in ways):
        if measuring.number(base, printed.metric, printed.direction) is not None:
            continue
        needed: tuple[str, ...] = WAYS
        if printed.direction:
            needed = (printed.direction,)
        missing = [TASKS[way] for way in needed if way not in given.ways]
        if missing:
            raise InputError(
                f"--published {printed.name}: {given.name} does not rank {' nor '.join(missing)}; give "
                "numbers of the direction that it ranks, or scores of both"
            )
        raise InputError(
            f"--published {printed.name}: {given.name} lists each query's best candidates alone, not "
            "every right one, so that its ranks are not known; give numbers such as R@1, or a matrix "
            "or vectors"
        )
    return ways


def beside_measured(
    measuring: Measuring, base: Measurement, published: Sequence[Printed]
) -> Iterator[Sampled]:
    """Each published number beside the measured one and its interval."""
    for printed in published:
        images = measuring.images(base, printed.direction)
        interval = measuring.interval(base, printed.metric, printed.direction)
        of_seeds = []
        for measurement in measuring.of_seeds(base):
            number = measuring.number(measurement, printed.metric, printed.direction)
            of_seeds.append(number or 0.0)
        yield Sampled(printed, interval, tuple(of_seeds), images, len(published))


def _try(
    searches: Sequence["_Search"], known: Sequence[Difference], most: int, progress: Progress
) -> None:
    """Measure more and more differences together, until a choice of several explains."""
    measuring = searches[0].measuring
    for counts in ((0, 1), (2,), (3,))[:most]:
        choices = [of_way.all_choices(known, counts) for of_way in searches]
        measurements: list[Measurement] = []
        for of_way, of_search in zip(searches, choices, strict=True):
            measurements += map(of_way.measurement, of_search)
        measuring.rank(measurements, progress)
        for of_way, of_search in zip(searches, choices, strict=True):
            of_way.measure(of_search)
        if counts[-1] > 1 and any(of_way.is_explained for of_way in searches):
            break


def _nearness(variant: Variant) -> tuple[bool, bool, int, Decimal, int]:
    """By what variants are sorted: the protocol, those that reproduce by few differences, the
    nearest.
    """
    count = len(variant.differences)
    needed = 0
    if variant.reproduces:
        needed = count
    return count > 0, not variant.reproduces, needed, variant.distance, count


def _pool(splits: Mapping[str, Given], wanted: Measurement) -> Given | None:
    """The pool of a measurement; None where it is not known."""
    of_split = splits.get(wanted.split)
    if of_split is None:
        return None
    return of_split.read(wanted.reading)


def _not_read(given: Given) -> Iterator[str]:
    """Say which other readings of the files were not tried, and why."""
    names_by_reason: dict[str, list[str]] = {}
    for reading, reason in given.refused.items():
        names_by_reason.setdefault(reason, []).append(reading)
    for reason, names in names_by_reason.items():
        yield f"Not tried: {', '.join(names)}: {reason}."


NotTried: TypeAlias = Mapping[str, Sequence[Difference]]


def _possible(
    measuring: Measuring, base: Measurement, published: Sequence[Printed], ways: Sequence[str]
) -> tuple[list[Difference], NotTried]:
    """The differences that can be tried, and those that need what is not known."""
    known: list[Difference] = []
    not_tried: dict[str, list[Difference]] = {}
    splits = measuring.splits
    measured = splits[base.split]
    parts = [of_part(name) for name in measured.otherwise if name not in READINGS]
    for difference in (*DIFFERENCES, *parts):
        if not difference.changed(base) or not _is_asked(difference, published):
            continue
        wanted = replace(base, **dict(difference.choices))
        given = _pool(splits, wanted)
        if wanted.instead and not _may_be_another(published, measured):
            continue
        if wanted.reading and measured.is_of_hits:
            not_tried.setdefault(SCORES, []).append(difference)
            continue
        if given is None and wanted.reading:
            continue  # which the files do not have, or a note says why they cannot be read so
        lacking = "scores of other splits"
        if given is not None:
            lacking = given.lacks(wanted)
        if lacking:
            not_tried.setdefault(lacking, []).append(difference)
            if given is not None and _is_known_otherwise(given, wanted):
                known.append(difference)
        elif given is not None and not given.is_idle(wanted, base):
            if given.is_of_hits and not _is_told(measuring, wanted, published, ways):
                not_tried.setdefault(SCORES, []).append(difference)
            else:
                known.append(difference)
    return known, not_tried


def _is_told(
    measuring: Measuring, wanted: Measurement, published: Sequence[Printed], ways: Sequence[str]
) -> bool:
    """Whether the published numbers can be measured so, for a direction that may be meant."""
    for way in ways:
        numbers = []
        for printed in with_direction(published, way):
            numbers.append(measuring.number(wanted, printed.metric, printed.direction))
        if None not in numbers:
            return True
    return False


def _is_known_otherwise(given: Given, wanted: Measurement) -> bool:
    """Whether another reading of the files has what a measurement needs, so that both can be tried
    together.
    """
    if wanted.reading:
        return False
    for reading in given.otherwise:
        pool = given.read(reading)
        if pool is not None and not pool.lacks(wanted):
            return True
    return False


def _may_be_another(published: Sequence[Printed], given: Given) -> bool:
    """Whether tools call several metrics by the name of a published one: where it is none of
    captions' images, as in all papers.
    """
    metrics = [printed.metric for printed in published]
    if not any(metric.k for metric in metrics):
        return False
    is_of_tool = given.is_listed or "qrels" in given.judged
    return is_of_tool or any(metric.asks_for_every for metric in metrics)


def _is_asked(difference: Difference, published: Sequence[Printed]) -> bool:
    """Whether any of the published numbers is of the kind that a difference may change."""
    choices = dict(difference.choices)
    if choices.get("directions") == "exchanged":
        # Of numbers that do not say their direction both are tried.
        return any(bool(number.direction) for number in published)
    if "directions" in choices:
        return any(number.metric.summed is None for number in published)
    if "at" in choices:
        # Several numbers would be one.
        return len({number.metric for number in published}) == 1
    if choices.get("hits") == "share":
        return any(isinstance(number.metric, Hit | RSum) for number in published)
    if "cutoff" in choices:
        return any(isinstance(number.metric, Hit | RSum) for number in published)
    if "summed" in choices:
        return any(number.metric.summed is not None for number in published)
    if "median" in choices:
        return any(number.metric.is_median for number in published)
    if "from_zero" in choices:
        return not all(number.metric.is_share for number in published)
    return True


def _families(
    base: Measurement, known: Sequence[Difference], not_tried: NotTried, given: Given
) -> Iterator[Coverage]:
    """What was tried of each family of differences, and why the rest was not."""
    for family in FAMILIES:
        tried = sum(difference.family == family for difference in known)
        if family.choices == ("unit",) and given.is_of_one_length:
            tried = 0  # they change numbers only with others, such as averaged captions
        lacking = []
        for need, differences in not_tried.items():
            if any(difference.family == family for difference in differences):
                lacking.append(need)
        idle = ""
        is_refused = family.choices == ("reading",) and bool(given.refused)
        if not tried and not lacking and not is_refused:
            idle = family.idle.format(images=counted(given.images, "image"), size=given.fold)
        yield Coverage(family.words, tried, tuple(lacking), idle)


# The choices for which scores are ranked again.
RANKED = {*STEPS["vectors"], *STEPS["scores"], *STEPS["pool"], "hits"}


class _Search:
    """The variants of one reading of the published numbers."""

    def __init__(
        self, measuring: Measuring, base: Measurement, published: Sequence[Printed], way: str
    ) -> None:
        self.measuring = measuring
        self.base = base
        self.published = with_direction(published, way)
        self.way = way  # the direction of numbers that do not say theirs
        self.shown: dict[Choice, Shown] = {}
        self.is_pruned = False  # whether some were left out as they are not near
        self._measured: set[Measurement] = set()
        # What one difference or two together change, are and give: each of them is in many choices.
        self._changes: dict[Difference, frozenset[str]] = {}
        self._measurements: dict[Choice, Measurement] = {}
        self._shown_of: dict[Choice, Shown | None] = {}
        self._effects: dict[Difference, np.ndarray | None] = {}

    @property
    def is_explained(self) -> bool:
        return any(not self.distance(shown)[0] for shown in self.shown.values())

    def variants(self, given: Given) -> Iterator[Variant]:
        """What was measured, in words."""
        for choice, shown in self.shown.items():
            words = _words(choice, given)
            distance, equal = self.distance(shown)
            yield Variant(words, shown, distance, equal, self.way)

    def all_choices(self, known: Sequence[Difference], counts: Iterable[int]) -> list[Choice]:
        """The choices of each number of differences."""
        choices: list[Choice] = []
        slow: list[tuple[float, Choice]] = []
        for count in counts:
            for choice in self.choices(known, count):
                if self._is_slow(choice):
                    slow.append((self._gap(choice), choice))
                else:
                    choices.append(choice)
        slow.sort(key=lambda gap_and_choice: gap_and_choice[0])
        cells = max(given.cells for given in self.measuring.splits.values())
        kept = min(max(CELLS_TOGETHER // cells, LEAST_TOGETHER), MOST_TOGETHER)
        self.is_pruned = self.is_pruned or len(slow) > kept
        return choices + [choice for _, choice in slow[:kept]]

    def _is_slow(self, choice: Choice) -> bool:
        """Whether the scores are ranked again for several differences together, which takes
        time.
        """
        if len(self._ranked(choice)) < RANKINGS:
            return False
        return not self.measuring.is_ranked(self.measurement(choice))

    def _gap(self, choice: Choice) -> float:
        """How far the sum of the effects is from the published numbers, at most."""
        effects = [self._effect(difference) for difference in choice]
        known = [effect for effect in effects if effect is not None]
        return float(np.abs(self._off + np.sum(known, axis=0)).max())

    def choices(self, known: Sequence[Difference], together: int) -> Iterator[Choice]:
        """So many differences at a time that can be made and may reach the published numbers."""
        for choice in combinations(known, together):
            changed = list(map(self._changed, choice))
            is_disjoint = sum(map(len, changed)) == len(frozenset().union(*changed))
            if is_disjoint and self._is_near(choice) and self._is_possible(choice):
                yield choice

    def measurement(self, choice: Choice) -> Measurement:
        """The protocol with some differences."""
        if choice not in self._measurements:
            changed_choices: dict[str, Any] = {}
            for difference in choice:
                changed = self._changed(difference)
                for choice_name, choice_value in difference.choices:
                    if choice_name in changed:
                        changed_choices[choice_name] = choice_value
            self._measurements[choice] = replace(self.base, **changed_choices)
        return self._measurements[choice]

    def _changed(self, difference: Difference) -> frozenset[str]:
        """The fields in which a difference is another choice than the protocol's."""
        if difference not in self._changes:
            self._changes[difference] = difference.changed(self.base)
        return self._changes[difference]

    def _ranked(self, choice: Choice) -> list[Difference]:
        """The differences of a choice that change the ranking."""
        return [difference for difference in choice if self._changed(difference) & RANKED]

    def measure(self, choices: Iterable[Choice]) -> None:
        """Keep choices each of whose differences changes a printed number."""
        for choice in choices:
            wanted = self.measurement(choice)
            shown = self._shown(choice)
            # Two differences may be a third one together.
            if shown is None or wanted in self._measured:
                continue
            self._measured.add(wanted)
            if shown not in map(self._shown, _all_but_one(choice)):
                self.shown[choice] = shown

    def distance(self, shown: Shown) -> tuple[Decimal, int]:
        """The largest difference from a published number, and how many are equal."""
        distances = []
        for measured_number, printed in zip(shown, self.published, strict=True):
            distances.append(abs(measured_number - printed.number))
        return max(distances), distances.count(Decimal(0))

    def _is_possible(self, choice: Choice) -> bool:
        wanted = self.measurement(choice)
        if wanted.directions == "mean" and self.way == WAYS[1]:
            return False  # which is that of the other direction
        given = _pool(self.measuring.splits, wanted)
        if given is None or given.lacks(wanted):
            return False
        return not given.is_idle(wanted, self.base)

    def _is_near(self, choice: Choice) -> bool:
        """Whether differences are worth measuring together: whether the sum of their effects is
        near.

        What they do together may differ from this sum by twice the smaller effects. Two are not
        left out here: `all_choices` takes the nearest of those that take time.
        """
        if len(self._ranked(choice)) > RANKINGS:
            return False
        if len(choice) <= 2:
            return True
        effects = [self._effect(difference) for difference in choice]
        if any(effect is None for effect in effects):
            return False
        of_choice = np.array(effects)
        sizes = np.abs(of_choice)
        reach = self._reach + 2 * (sizes.sum(0) - sizes.max(0))
        is_near = bool((np.abs(self._off + of_choice.sum(0)) <= reach).all())
        self.is_pruned = self.is_pruned or not is_near
        return is_near and not self._is_slow(choice)

    @cached_property
    def _off(self) -> np.ndarray:
        """How far each of the protocol's numbers is from the published one."""
        shown = self._shown(())
        assert shown is not None
        return np.array(shown, float) - [float(printed.number) for printed in self.published]

    @cached_property
    def _reach(self) -> np.ndarray:
        """How far from each published number others are near it."""
        return np.array([float(_near(printed)) for printed in self.published])

    def _effect(self, difference: Difference) -> np.ndarray | None:
        """By how much a difference alone changes each number; None where it cannot be measured."""
        if difference not in self._effects:
            alone = self._shown((difference,))
            base = self._shown(())
            self._effects[difference] = None
            if alone is not None and base is not None:
                self._effects[difference] = np.array(alone, float) - np.array(base, float)
        return self._effects[difference]

    def _shown(self, choice: Choice) -> Shown | None:
        """The numbers of a choice, rounded as the published ones; None if one is not known."""
        if choice not in self._shown_of:
            self._shown_of[choice] = None
            if not choice or self._is_possible(choice):
                self._shown_of[choice] = self._numbers(self.measurement(choice))
        return self._shown_of[choice]

    def bounds(self, known: Sequence[Difference], given: Given) -> Iterator[Bounds]:
        """Where the published numbers lie between those of the worst and of the best order of ties:
        by the protocol, and with each difference alone.
        """
        choices: list[Choice] = [()]
        choices += [(difference,) for difference in known]
        for choice in choices:
            if self._shown(choice) is None:
                continue
            wanted = self.measurement(choice)
            worst = self._numbers(replace(wanted, ties="pessimistic"))
            best = self._numbers(replace(wanted, ties="optimistic"))
            if wanted.ties != self.base.ties or worst is None or best is None or worst == best:
                continue
            are_between = []
            for printed, low, high in zip(self.published, worst, best, strict=True):
                are_between.append(min(low, high) <= printed.number <= max(low, high))
            if all(are_between):
                yield Bounds(_words(choice, given), worst, best)

    def _numbers(self, wanted: Measurement) -> Shown | None:
        """The numbers of a measurement, likewise."""
        variant_numbers = []
        for printed in self.published:
            measured_number = self.measuring.number(wanted, printed.metric, printed.direction)
            if measured_number is None:
                return None
            variant_numbers.append(printed.rounded(measured_number, wanted.rounding))
        return tuple(variant_numbers)


def _words(choice: Choice, given: Given) -> tuple[str, ...]:
    return tuple(
        difference.words.format(folds=given.folds, size=given.fold) for difference in choice
    )


def _all_but_one(choice: Choice) -> Iterator[Choice]:
    """The choice without each of its differences."""
    for left_out in range(len(choice)):
        yield choice[:left_out] + choice[left_out + 1 :]


def _near(printed: Printed) -> Decimal:
    """How far from a published number others are near it."""
    if not printed.metric.is_share:
        return NEAR * Decimal(1)
    return NEAR * Decimal(printed.metric.most)


def _by_chance(published: Sequence[Printed], variants: Sequence[Variant]) -> tuple[float, ...]:
    """The share of numbers drawn near the published ones that variants with at most 0, 1, 2, …
    differences have.
    """
    units = [printed.unit for printed in published]
    random_units = np.random.default_rng(0)
    drawn_units = []
    for printed, unit in zip(published, units, strict=True):
        reach = max(1, int(_near(printed) / unit))
        drawn_units.append(random_units.integers(-reach, reach, size=DRAWN, endpoint=True))
    drawn = np.stack(drawn_units, axis=1)
    # How many units each variant is from the published numbers -> the fewest differences.
    fewest_differences: dict[tuple[int, ...], int] = {}
    for variant in variants:
        units_apart = []
        for variant_number, printed, unit in zip(variant.numbers, published, units, strict=True):
            units_apart.append(int((variant_number - printed.number) / unit))
        differences = len(variant.differences)
        apart = tuple(units_apart)
        fewest_differences[apart] = min(fewest_differences.get(apart, differences), differences)
    most = max((len(variant.differences) for variant in variants), default=0)
    needed = []
    for drawn_apart in map(tuple, drawn.tolist()):
        needed.append(fewest_differences.get(drawn_apart, most + 1))
    needed_differences = np.array(needed)
    shares = []
    for differences in range(most + 1):
        is_explained = needed_differences <= differences
        shares.append(float(is_explained.mean()))
    return tuple(shares)

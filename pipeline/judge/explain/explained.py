"""The answer of `explain`: variants of a measurement, nearest first, as text, Markdown or JSON."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from statistics import stdev
from typing import Any, NamedTuple, TypeAlias

from pipeline.foundation.evaluation.metrics import Statistic
from pipeline.foundation.evaluation.statistics import Interval
from pipeline.foundation.evaluation.statistics.distributions import quantile
from pipeline.foundation.parts.errors import counted, sized
from pipeline.foundation.parts.wrapping import wrapped
from pipeline.judge.explain.printed import Printed
from pipeline.judge.tables import evaluated, markdown, text
from pipeline.judge.tables.table import Cell, Panel, grid

Shown: TypeAlias = tuple[Decimal, ...]
# How far from the published numbers others are drawn at most: points, ranks, or of a sum six times
# as many.
NEAR = 2
OFF_BY = "off by"  # the heading of the largest difference from a published number
PROTOCOL = "measured by the protocol"
# In how many of 100 cases a number may lie outside of its interval by chance.
OUTSIDE = 0.05
# With fewer seeds the interval of another seed is wide; with two seeds, or so few images, it holds
# nearly any number.
FEW_SEEDS = 5
NO_SEEDS = 2
NO_IMAGES = 20
# Numbers nearby that variants match more often are matched by chance.
BY_CHANCE = 0.05
# What is not known -> how to give it.
HOW = {
    "the scores": "the scores, which a file of hits does not have",
    "vectors": "IMAGES.npy:CAPTIONS.npy",
    "one matrix of scores": "scores of all pairs, the same in both directions",
    "the captions' texts": "--manifest",
    "scores of other splits": "--manifest and scores of all its images, or a scored system by its name",
    "judgements": "--qrels, or CxC's files: -S evaluate.cxc=FOLDER",
    "every pair's score": "a matrix or vectors, not lists of the best alone",
    "lists with ids and judgements": "a run with --qrels",
    "both directions": "lists of both directions",
    "captions' own images": "--manifest, or for a matrix --captions-per-image",
    "an encoder and captions": "--encoder clip:FOLDER with vectors and --manifest",
}


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


class Sampled(NamedTuple):
    """A published number beside the measured one, and where chance alone may bring it."""

    printed: Printed
    interval: Interval  # The measured number with its 95 % interval over images
    seeds: tuple[float, ...]  # The measured number of each seed
    images: int  # Of how many images the queries are
    together: int  # How many numbers are published together

    @property
    def ends(self) -> tuple[Decimal, Decimal]:
        """Between which numbers those of another sample of as many images lie, and, where several
        seeds are given, of another seed: all that are published together in 95 of 100 cases.

        Bonferroni's correction of Student's intervals for one more value; a sample's and a seed's
        deviations are independent.
        """
        share = 1 - OUTSIDE / 2 / self.together
        value = self.interval.value
        freedom = max(self.images - 1, 1)
        wider = quantile(freedom, share) / quantile(freedom, 1 - OUTSIDE / 2)
        # Two samples differ, not one from the truth.
        wider *= math.sqrt(2)
        of_seeds = 0.0
        count = len(self.seeds)
        if count > 1:
            of_seeds = quantile(count - 1, share) * stdev(self.seeds) * math.sqrt(1 + 1 / count)
        below = math.hypot(wider * (value - self.interval.low), of_seeds)
        above = math.hypot(wider * (self.interval.high - value), of_seeds)
        metric = self.printed.metric
        if metric.is_median:
            # It moves by whole ranks, which equal seeds and images drawn again may not show.
            below = max(below, 1)
            above = max(above, 1)
        low = value - below
        high = value + above
        if metric.is_share:
            low = max(low, 0)
            high = min(high, metric.scale * metric.most)
        else:
            low = max(low, 1)
        return self.printed.rounded(low, "nearest"), self.printed.rounded(high, "nearest")

    @property
    def measured(self) -> Decimal:
        """The measured number, rounded as the published one is."""
        return self.printed.rounded(self.interval.value, "nearest")

    @property
    def is_within(self) -> bool:
        """Is the published number between these ends?"""
        low, high = self.ends
        return low <= self.printed.number <= high


class Bounds(NamedTuple):
    """Numbers by the worst and by the best order of ties, between which any other sort's are."""

    differences: tuple[str, ...]  # In words; () for the protocol itself
    worst: Shown
    best: Shown


class Coverage(NamedTuple):
    """What was tried of a family of differences."""

    family: str  # In words
    tried: int  # How many differences
    lacking: tuple[str, ...]  # What the others need that is not known, keys of `HOW`
    idle: str  # Why none changes anything; "" where some are tried or lack something


@dataclass(frozen=True)
class Explanation:
    """What was tried to explain published numbers."""

    name: str  # The scores
    shape: tuple[int, int]  # Images and captions
    sides: tuple[str, str]  # What these are called: of runs, candidates and queries
    protocol: str
    published: tuple[Printed, ...]
    # Each of them beside the measured number, for each direction that may be meant.
    sampled: tuple[Sampled, ...]
    # The protocol itself first, then all that were tried, those that reproduce first.
    variants: tuple[Variant, ...]
    # Where the published numbers lie between those of two orders of ties.
    bounds: tuple[Bounds, ...]
    # What is not known -> the differences that need it, in words.
    not_tried: Mapping[str, tuple[str, ...]]
    families: tuple[Coverage, ...]
    differences: int  # How many were tried
    together: int  # How many at a time at most
    is_pruned: bool  # Whether two that both change the ranking were tried only near the numbers
    # The share of numbers nearby that at most 0, 1, 2, … differences would explain too.
    by_chance: tuple[float, ...]
    notes: tuple[str, ...] = ()  # Doubts about the scores, and about the published numbers

    def __str__(self) -> str:
        return to_text(self)

    @property
    def pool(self) -> dict[str, Any]:
        """What describes the pool, as results do."""
        return {"sides": self.sides}

    @property
    def statistics(self) -> list[str]:
        """What each published number is, such as t2i R@1."""
        return list(map(_name, self.published))

    @property
    def references(self) -> tuple[Variant, ...]:
        """The protocol's own numbers, for each direction that may be meant."""
        return tuple(variant for variant in self.variants if not variant.differences)

    @property
    def tried(self) -> tuple[Variant, ...]:
        """All with a difference."""
        return tuple(variant for variant in self.variants if variant.differences)

    @property
    def reproducing(self) -> tuple[Variant, ...]:
        """Those that give all published numbers; () if nothing explains them."""
        return tuple(variant for variant in self.variants if variant.reproduces)


def to_text(
    explanation: Explanation, rows: int = 10, width: int | None = None, strong: text.Strong = str
) -> str:
    """Write the finding, then the protocol's numbers and the nearest variants as a table.

    width: of the terminal, None for any. strong: writes the finding.
    """
    title = wrapped(_title(explanation))
    table = text.to_text(_table(explanation, rows), width=width)
    finding = strong(wrapped(_finding(explanation)))
    chance = [*map(wrapped, _also(explanation)), *map(wrapped, _chance(explanation))]
    remarks = map(wrapped, _remarks(explanation))
    return "\n".join([finding, *chance, title, *table, *remarks])


def to_markdown(explanation: Explanation, rows: int = 10) -> str:
    """Write the same as Markdown, see `to_text`."""
    finding = markdown.escape(_finding(explanation))
    chance = [*_also(explanation), *_chance(explanation)]
    chance = [markdown.escape(sentence) for sentence in chance]
    title = markdown.escape(_title(explanation))
    table = markdown.rows(_table(explanation, rows))
    remarks = map(markdown.escape, _remarks(explanation))
    return "\n\n".join([finding, *chance, title, table, *remarks])


def to_json(explanation: Explanation) -> dict[str, Any]:
    """Give all variants that were tried as plain JSON values."""
    statistics = explanation.statistics
    published_numbers = [float(printed.number) for printed in explanation.published]
    explained = {
        "name": explanation.name,
        "images": explanation.shape[0],
        "captions": explanation.shape[1],
        "sides": [*explanation.sides],
        "protocol": explanation.protocol,
        "published": dict(zip(statistics, published_numbers, strict=True)),
        "measured": [_sampled_as_dict(sampled) for sampled in explanation.sampled],
        "explained": bool(explanation.reproducing),
        "tried": len(explanation.tried),
        "reproducing": len(explanation.reproducing),
        "by_chance": list(explanation.by_chance),
        "not_tried": {key: list(words) for key, words in explanation.not_tried.items()},
        "between_orders_of_ties": [list(bounds.differences) for bounds in explanation.bounds],
        "families": [_coverage_as_dict(coverage) for coverage in explanation.families],
        "variants": [_as_dict(variant, statistics) for variant in explanation.variants],
    }
    if explanation.notes:
        explained["notes"] = list(explanation.notes)
    return explained


def _sampled_as_dict(sampled: Sampled) -> dict[str, Any]:
    return {
        "number": _name(sampled.printed),
        "published": float(sampled.printed.number),
        "measured": sampled.interval.value,
        "interval": [sampled.interval.low, sampled.interval.high],
        "another_sample": list(map(float, sampled.ends)),
        "within": sampled.is_within,
        "seeds": list(sampled.seeds),
    }


def _coverage_as_dict(coverage: Coverage) -> dict[str, Any]:
    described: dict[str, Any] = {"family": coverage.family, "tried": coverage.tried}
    if coverage.lacking:
        described["give"] = [HOW[need] for need in coverage.lacking]
    if coverage.idle:
        described["no_effect"] = coverage.idle
    return described


def _name(printed: Printed) -> str:
    return str(Statistic(printed.direction, str(printed.metric)))


def _as_dict(variant: Variant, statistics: list[str]) -> dict[str, Any]:
    described_variant: dict[str, Any] = {"differences": list(variant.differences)}
    if variant.direction:
        described_variant["direction"] = variant.direction
    described_variant["numbers"] = dict(zip(statistics, map(float, variant.numbers), strict=True))
    described_variant["distance"] = float(variant.distance)
    described_variant["reproduces"] = variant.reproduces
    return described_variant


def _title(explanation: Explanation) -> str:
    images, captions = explanation.shape
    published = ", ".join(map(str, explanation.published))
    pool = f"{sized(images, captions, *explanation.sides)}, protocol {explanation.protocol}"
    return f"{explanation.name}: {pool}; published: {published}"


def _finding(explanation: Explanation) -> str:
    """The answer in a sentence: what gives the published numbers, or that nothing does."""
    if any(reference.reproduces for reference in explanation.references):
        if len(explanation.published) == 1:
            return "The published number is the one measured."
        return "The published numbers are those measured."
    reasons = _reasons(explanation)
    if reasons and not _is_chance_likelier(explanation):
        return f"{_hedge(explanation)}: {_reason(explanation)}"
    if not reasons and _is_of_ties(explanation):
        return f"Possible reason found: {_unstable(explanation)}"
    if _may_be_chance(explanation):
        numbers = "the published number lies"
        if len(explanation.published) > 1:
            numbers = "all published numbers lie"
        chance = f"Chance may be the reason{_cannot_tell(explanation)}"
        return f"{chance}: {numbers} within the {_intervals(explanation)}."
    return f"No reason found {_searched(explanation)}."


def _also(explanation: Explanation) -> Iterator[str]:
    """Name the variant that gives the numbers where chance is the likelier reason."""
    is_measured = any(reference.reproduces for reference in explanation.references)
    if _reasons(explanation) and not is_measured and _is_chance_likelier(explanation):
        yield f"Also possible: {_reason(explanation)}"


def _reasons(explanation: Explanation) -> list[Variant]:
    """The variants that give the published numbers, those of the fewest differences first."""
    return [variant for variant in explanation.reproducing if variant.differences]


def _reason(explanation: Explanation) -> str:
    """The first variant that gives the published numbers, and how many others do."""
    reasons = _reasons(explanation)
    tried = counted(len(explanation.tried), "variant")
    reason = f"{'; '.join(reasons[0].differences)} {_gives(explanation)}"
    others = len(reasons) - 1
    if others == 0:
        return f"{reason} (the only one of {tried})."
    if others == 1:
        return f"{reason}, as does 1 other of {tried}."
    return f"{reason}, as do {others} others of {tried}."


def _is_matched_by_chance(explanation: Explanation) -> bool:
    """Whether variants of as few differences as the first reason match many numbers nearby."""
    differences = len(_reasons(explanation)[0].differences)
    return explanation.by_chance[differences] > BY_CHANCE


def _is_chance_likelier(explanation: Explanation) -> bool:
    """Whether chance alone may be the reason, and variants match many numbers nearby."""
    return _may_be_chance(explanation) and _is_matched_by_chance(explanation)


def _hedge(explanation: Explanation) -> str:
    """How sure it is that the variant that gives the numbers is the reason."""
    reasons = _reasons(explanation)
    is_one_of_several = len(reasons) > 1 or len(explanation.published) == 1
    is_combined = len(reasons[0].differences) > 1
    if is_one_of_several or (is_combined and _is_matched_by_chance(explanation)):
        return "Possible reason found"
    return "Reason found"


def _cannot_tell(explanation: Explanation) -> str:
    """Warn where seeds or images are so few that the interval holds nearly any number."""
    few = []
    sampled = explanation.sampled[0]
    if len(sampled.seeds) == NO_SEEDS:
        few.append("two seeds")
    if sampled.images < NO_IMAGES:
        few.append(counted(sampled.images, explanation.sides[0]))
    if not few:
        return ""
    return f", but {' and '.join(few)} cannot tell"


def _gives(explanation: Explanation) -> str:
    """What a variant does that reproduces."""
    count = len(explanation.published)
    if count == 1:
        return "gives the number"
    if count == 2:
        return "gives both numbers"
    return f"gives all {count} numbers"


def _searched(explanation: Explanation) -> str:
    """What was searched: among how many differences, how many of them together."""
    together = "alone"
    if explanation.together > 1:
        together = "alone or two together"
    if explanation.together > 2:
        together += ", or three of which at most two change the ranking"
    return f"among {counted(explanation.differences, 'difference')}, {together}"


def _may_be_chance(explanation: Explanation) -> bool:
    """Whether chance alone may be the reason for all numbers, of a direction that may be meant."""
    count = len(explanation.published)
    for first in range(0, len(explanation.sampled), count):
        of_way = explanation.sampled[first : first + count]
        if all(sampled.is_within for sampled in of_way):
            return True
    return False


def _chance(explanation: Explanation) -> Iterator[str]:
    """Say which published numbers another sample of images, or another seed, may explain."""
    equal = []
    within = []
    far = []
    # A number of both directions is there for each direction that others may be of.
    for sampled in dict.fromkeys(explanation.sampled):
        low, high = sampled.ends
        if sampled.measured == sampled.printed.number:
            equal.append(_name(sampled.printed))
        elif sampled.is_within:
            within.append(f"{_name(sampled.printed)} [{low}, {high}]")
        else:
            far.append(f"{sampled.printed}, measured {sampled.measured} [{low}, {high}]")
    parts = []
    if equal:
        parts.append(f"as measured: {', '.join(equal)}")
    if within:
        parts.append(f"within the {_intervals(explanation)}: {', '.join(within)}")
    if far and within:
        parts.append(f"too far off for that: {', '.join(far)}")
    elif far:
        parts.append(f"too far off for {_others(explanation)}: {', '.join(far)}")
    if not within and not far:
        return
    sentence = "; ".join(parts)
    yield f"{sentence[0].upper()}{sentence[1:]}."
    seeds = len(explanation.sampled[0].seeds)
    if seeds > 1 and seeds < FEW_SEEDS:
        yield f"From {seeds} seeds little is known of another one: the intervals are wide."
    elif seeds == 1 and far and not explanation.reproducing:
        yield "One seed does not show how far off another may be: give several, a.npy,b.npy."


def _intervals(explanation: Explanation) -> str:
    """Within what numbers lie that chance alone may explain."""
    if len(explanation.published) == 1:
        return f"95 % interval for {_others(explanation)}"
    return f"joint 95 % intervals for {_others(explanation)}"


def _others(explanation: Explanation) -> str:
    """What else would have been measured by chance."""
    sampled = evaluated.sampled([(explanation.name, explanation.pool)])
    if len(explanation.sampled[0].seeds) > 1:
        return f"another seed and sample of {sampled}"
    return f"another sample of {sampled}"


def _table(explanation: Explanation, rows: int) -> Panel:
    """The protocol's own numbers, then the nearest variants."""
    is_open = any(variant.direction for variant in explanation.variants)
    headings = [""]
    if is_open:
        headings.append("direction")
    headings += [*explanation.statistics, OFF_BY]
    if len(explanation.published) > 1:
        headings.append("equal")
    references = explanation.references
    # Variants that are farther off than the protocol explain nothing.
    farthest = min((reference.distance for reference in references), default=Decimal("Infinity"))
    nearer = [variant for variant in explanation.tried if variant.distance <= farthest]
    variants = (*references, *nearer[:rows])
    variant_rows = []
    for variant in variants:
        direction = ""
        if is_open:
            direction = evaluated.task(explanation.pool, variant.direction)
        variant_rows.append(_row(variant, direction))
    return grid(headings, {"": variant_rows}, texts=1 + is_open)


def _row(variant: Variant, direction: str) -> list[str | Cell]:
    """A variant's line of the table. direction: in words; "" where it is not shown."""
    cells: list[str | Cell] = ["; ".join(variant.differences) or PROTOCOL]
    if direction:
        cells.append(direction)
    cells += [*map(Cell, variant.numbers), Cell(variant.distance)]
    if len(variant.numbers) > 1:
        cells.append(f"{variant.equal} of {len(variant.numbers)}")
    return cells


def _remarks(explanation: Explanation) -> Iterator[str]:
    """Say how many variants explain the numbers, how many would by chance, and what was tried."""
    what = "the published number"
    if len(explanation.published) > 1:
        what = "the published numbers"
    if any(variant.differences for variant in explanation.reproducing):
        yield from _explained_by(explanation, what)
    elif not explanation.reproducing:
        yield _unexplained(explanation, what)
        if explanation.bounds and not _is_of_ties(explanation):
            yield f"Not excluded: {_unstable(explanation)}"
    if len(explanation.by_chance) > 1:
        some = _share(explanation.by_chance[-1])
        one = _share(explanation.by_chance[1])
        yield (
            f"By chance: random numbers within {NEAR} points of {what} would be matched by some variant "
            f"in {some} of cases, by one with at most one difference in {one}."
        )
    yield from _coverage(explanation)
    yield from explanation.notes


def _is_of_ties(explanation: Explanation) -> bool:
    """Whether the protocol's own ties may give the numbers."""
    return bool(explanation.bounds) and not explanation.bounds[0].differences


def _unstable(explanation: Explanation) -> str:
    """That a sort which leaves the order of ties open may give the numbers."""
    nearest = explanation.bounds[0]
    ends = []
    for name, worst, best in zip(explanation.statistics, nearest.worst, nearest.best, strict=True):
        ends.append(f"{name} {worst} to {best}")
    how = "; ".join(nearest.differences) or PROTOCOL
    return (
        f"an unstable sort such as numpy's argsort; {how}, the worst and the best order of ties give "
        f"{', '.join(ends)}."
    )


def _explained_by(explanation: Explanation, what: str) -> Iterator[str]:
    """How many variants give the published numbers, by the number of differences."""
    yield f"Variants that give {what}: {_by_count(explanation)}."
    count = sum(bool(variant.differences) for variant in explanation.reproducing)
    if len(explanation.published) == 1:
        yield "One number shows little; give more of the paper's: R@1=…,R@5=…."
    elif count > 1:
        yield "These numbers alone do not show which it was."


def _unexplained(explanation: Explanation, what: str) -> str:
    """How near the nearest variant comes, and what was left out."""
    said = []
    if _is_of_ties(explanation) or _may_be_chance(explanation):
        said.append(f"No other reason found {_searched(explanation)}.")
    distance = min(variant.distance for variant in explanation.variants)
    off = f"{distance} off"
    if len(explanation.published) > 1:
        off = f"at most {distance} off"
    tried = len(explanation.tried)
    if tried == 1:
        said.append(f"The only variant is {off}.")
    elif tried > 1:
        said.append(f"The nearest of {tried} variants is {off}.")
    if explanation.is_pruned:
        said.append(
            "Two that both change the ranking were tried only where their effects add up to nearly "
            f"{what}."
        )
    return " ".join(said)


def _coverage(explanation: Explanation) -> Iterator[str]:
    """Say of each family of differences whether it was tried, and if not, why."""
    tried = [coverage.family for coverage in explanation.families if coverage.tried]
    if tried:
        yield f"Tried: {', '.join(tried)}."
    idle = []
    families_by_needs: dict[tuple[str, ...], list[str]] = {}
    for coverage in explanation.families:
        if coverage.idle:
            idle.append(f"{coverage.family} ({coverage.idle})")
        if coverage.lacking:
            family = coverage.family
            if coverage.tried:
                family = f"some of {family}"
            families_by_needs.setdefault(coverage.lacking, []).append(family)
    if idle:
        yield f"No effect here: {'; '.join(idle)}."
    if families_by_needs:
        untried = []
        for needs, families in families_by_needs.items():
            ways = ", or ".join(HOW[need] for need in needs)
            untried.append(f"{', '.join(families)}: give {ways}")
        yield f"Not tried: {'; '.join(untried)}"


def _by_count(explanation: Explanation) -> str:
    """How many variants with one difference reproduce, and how many with more."""
    most_differences = max(len(variant.differences) for variant in explanation.tried)
    reproducing_by_count = []
    for differences in range(1, most_differences + 1):
        tried = 0
        reproducing = 0
        for variant in explanation.tried:
            if len(variant.differences) == differences:
                tried += 1
                reproducing += variant.reproduces
        reproducing_by_count.append(
            f"{reproducing} of {tried} with {counted(differences, 'difference')}"
        )
    return ", ".join(reproducing_by_count)


def _share(share: float) -> str:
    if 0 < share < 0.01:
        return "less than 1 %"
    return f"{100 * share:.0f} %"

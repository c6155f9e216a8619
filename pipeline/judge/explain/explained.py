"""The answer of `explain`: variants of a measurement, nearest first, as text, Markdown or JSON."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from statistics import stdev
from typing import Any, NamedTuple, TypeAlias

from pipeline.foundation.evaluation.metrics import TASKS, Statistic
from pipeline.foundation.evaluation.statistics import Interval
from pipeline.foundation.evaluation.statistics.wilson import quantile
from pipeline.foundation.parts.errors import counted
from pipeline.foundation.parts.wrapping import wrapped
from pipeline.judge.explain.printed import Printed
from pipeline.judge.tables import markdown, text
from pipeline.judge.tables.table import Cell, Panel, grid

Shown: TypeAlias = tuple[Decimal, ...]
# How far from the published numbers others are drawn at most: points, ranks, or of a sum six times
# as many.
NEAR = 2
PROTOCOL = "measured by the protocol"
# What is not known -> how to give it.
HOW = {
    "vectors": "IMAGES.npy:CAPTIONS.npy",
    "one matrix of scores": "scores of all pairs, the same in both directions",
    "the captions' texts": "--manifest",
    "scores of other splits": "--manifest and scores of all its images, or a scored system by its name",
    "judgements": "--qrels, or CxC's files: -S evaluate.cxc=FOLDER",
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
    """A published number beside the measured one and its 95 % interval over images."""

    printed: Printed
    interval: Interval
    seeds: tuple[float, ...]  # The measured number of each seed

    @property
    def spread(self) -> tuple[Decimal, Decimal] | None:
        """Where 95 of 100 further seeds would be, rounded likewise; None for one seed.

        Student's interval for one more value.
        """
        count = len(self.seeds)
        if count < 2:
            return None
        wide = quantile(count - 1, 0.975) * stdev(self.seeds) * math.sqrt(1 + 1 / count)
        mean = self.interval.value
        return (
            self.printed.rounded(mean - wide, "nearest"),
            self.printed.rounded(mean + wide, "nearest"),
        )

    @property
    def ends(self) -> tuple[Decimal, Decimal]:
        """The interval's ends, rounded as the published number is."""
        low = self.printed.rounded(self.interval.low, "nearest")
        return low, self.printed.rounded(self.interval.high, "nearest")

    @property
    def measured(self) -> Decimal:
        """The measured number, rounded as the published one is."""
        return self.printed.rounded(self.interval.value, "nearest")

    @property
    def is_within(self) -> bool:
        """Whether the published number lies in the interval."""
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
    """Write the protocol's numbers and the nearest variants as a table, and what to think of them.

    width: of the terminal, None for any. strong: writes the verdict.
    """
    chances = map(wrapped, _chances(explanation))
    title = wrapped(_title(explanation))
    table = text.to_text(_table(explanation, rows), width=width)
    verdict, *remarks = map(wrapped, _remarks(explanation))
    return "\n".join([*chances, title, *table, strong(verdict), *remarks])


def to_markdown(explanation: Explanation, rows: int = 10) -> str:
    """Write the same as Markdown, see `to_text`."""
    chances = map(markdown.escape, _chances(explanation))
    title = markdown.escape(_title(explanation))
    table = markdown.rows(_table(explanation, rows))
    remarks = map(markdown.escape, _remarks(explanation))
    return "\n\n".join([*chances, title, table, *remarks])


def to_json(explanation: Explanation) -> dict[str, Any]:
    """Give all variants that were tried as plain JSON values."""
    statistics = explanation.statistics
    published_numbers = [float(printed.number) for printed in explanation.published]
    explained = {
        "name": explanation.name,
        "images": explanation.shape[0],
        "captions": explanation.shape[1],
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
    pool = f"{images} images x {captions} captions, protocol {explanation.protocol}"
    return f"{explanation.name}: {pool}; published: {published}"


def _chances(explanation: Explanation) -> Iterator[str]:
    """Say of each published number whether chance alone may be the reason."""
    for sampled in explanation.sampled:
        yield _chance(sampled)
    if any(sampled.measured != sampled.printed.number for sampled in explanation.sampled):
        yield "95 % intervals: how much a number would vary with another sample of images."


def _chance(sampled: Sampled) -> str:
    """Whether chance alone may be the reason for a number."""
    if sampled.measured == sampled.printed.number:
        return f"{sampled.printed} is the measured number."
    low, high = sampled.ends
    interval = f"the 95 % interval [{low}, {high}] of the measured {sampled.measured}"
    where = "outside"
    verdict = "chance alone is an unlikely reason"
    if sampled.is_within:
        where = "within"
        verdict = "the difference may be chance alone"
    of_seeds = ""
    if sampled.spread is not None:
        least, greatest = sampled.spread
        is_in_spread = least <= sampled.printed.number <= greatest
        of_seeds = f", and {'within' if is_in_spread else 'outside'} [{least}, {greatest}], where "
        of_seeds += f"another seed would be by the spread of these {len(sampled.seeds)}"
        if is_in_spread:
            verdict = "the difference may be chance alone"
    return f"{sampled.printed} lies {where} {interval}{of_seeds}: {verdict}."


def _table(explanation: Explanation, rows: int) -> Panel:
    """The protocol's own numbers, then the nearest variants."""
    is_open = any(variant.direction for variant in explanation.variants)
    headings = [""]
    if is_open:
        headings.append("direction")
    headings += [*explanation.statistics, "largest difference"]
    if len(explanation.published) > 1:
        headings.append("equal")
    references = explanation.references
    # Variants that are farther off than the protocol explain nothing.
    farthest = min((reference.distance for reference in references), default=Decimal("Infinity"))
    nearer = [variant for variant in explanation.tried if variant.distance <= farthest]
    variants = (*references, *nearer[:rows])
    variant_rows = [_row(variant, is_open) for variant in variants]
    return grid(headings, {"": variant_rows}, texts=1 + is_open)


def _row(variant: Variant, is_open: bool) -> list[str | Cell]:
    """A variant's line of the table. is_open: whether directions are shown."""
    cells: list[str | Cell] = ["; ".join(variant.differences) or PROTOCOL]
    if is_open:
        cells.append(TASKS[variant.direction])
    cells += [*map(Cell, variant.numbers), Cell(variant.distance)]
    if len(variant.numbers) > 1:
        cells.append(f"{variant.equal} of {len(variant.numbers)}")
    return cells


def _remarks(explanation: Explanation) -> Iterator[str]:
    """Say whether something explains the numbers, how many variants do, and how many would by
    chance.
    """
    what = "the published number"
    if len(explanation.published) > 1:
        what = "the published numbers"
    by_protocol = any(reference.reproduces for reference in explanation.references)
    by_difference = any(variant.differences for variant in explanation.reproducing)
    if by_protocol:
        yield f"The protocol itself gives {what}."
    if by_difference:
        yield _explained_by(explanation, what)
    elif not by_protocol:
        yield _unexplained(explanation, what)
    if explanation.bounds and not explanation.reproducing:
        yield _unstable(explanation, what)
    if len(explanation.by_chance) > 1:
        some = _share(explanation.by_chance[-1])
        one = _share(explanation.by_chance[1])
        yield (
            f"By chance: random numbers within {NEAR} points of {what} would be matched by some variant "
            f"in {some} of cases, by one with at most one difference in {one}."
        )
    yield from _coverage(explanation)
    yield from explanation.notes


def _unstable(explanation: Explanation, what: str) -> str:
    """That a sort which leaves the order of ties open may give the numbers."""
    nearest = explanation.bounds[0]
    ends = []
    for name, worst, best in zip(explanation.statistics, nearest.worst, nearest.best, strict=True):
        ends.append(f"{name} {worst} to {best}")
    how = "; ".join(nearest.differences) or PROTOCOL
    return (
        f"An unstable sort such as numpy's argsort may give {what}: {how}, the worst and the best "
        f"order of ties give {', '.join(ends)}."
    )


def _explained_by(explanation: Explanation, what: str) -> str:
    """How many variants give the published numbers."""
    count = sum(bool(variant.differences) for variant in explanation.reproducing)
    variants = f"{count} of {counted(len(explanation.tried), 'variant')}"
    by_count = _by_count(explanation)
    if count == 1:
        return f"{variants} gives {what}: {by_count}."
    doubt = "One number does not show which it was; give more of the paper's: R@1=…,R@5=…."
    if len(explanation.published) > 1:
        doubt = "These numbers alone do not show which it was."
    return f"{variants} give {what}: {by_count}. {doubt}"


def _unexplained(explanation: Explanation, what: str) -> str:
    nearest = ""
    if explanation.variants:
        distance = min(variant.distance for variant in explanation.variants)
        off = f"{distance} off"
        if len(explanation.published) > 1:
            off = f"at most {distance} off"
        variants = counted(len(explanation.tried), "variant")
        nearest = f" The nearest of {variants} is {off}."
    alone = "alone"
    if explanation.together > 1:
        alone = "alone or two together"
    if explanation.together > 2:
        alone += ", or three of which at most two change the ranking"
    left_out = ""
    if explanation.is_pruned:
        left_out = (
            " Two that both change the ranking were tried only where their effects add up to nearly "
            f"{what}."
        )
    differences = counted(explanation.differences, "difference")
    return f"None of the {differences} tried, {alone}, gives {what}.{nearest}{left_out}"


def _coverage(explanation: Explanation) -> Iterator[str]:
    """Say of each family of differences whether it was tried, and if not, why."""
    tried = [coverage.family for coverage in explanation.families if coverage.tried]
    if tried:
        yield f"Tried: {', '.join(tried)}."
    idle = []
    of_need: dict[str, list[str]] = {}
    for coverage in explanation.families:
        if coverage.idle:
            idle.append(f"{coverage.family} ({coverage.idle})")
        for need in coverage.lacking:
            family = coverage.family
            if coverage.tried:
                family = f"some of {family}"
            of_need.setdefault(need, []).append(family)
    if idle:
        yield f"No effect here: {'; '.join(idle)}."
    if of_need:
        untried = [f"{', '.join(families)}: give {HOW[need]}" for need, families in of_need.items()]
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

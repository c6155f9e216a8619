"""The answer of `explain`: variants of a measurement, nearest first, as text, Markdown or JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from pipeline.foundation.evaluation.metrics import TASKS, Statistic
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


@dataclass(frozen=True)
class Explanation:
    """What was tried to explain published numbers."""

    name: str  # The scores
    shape: tuple[int, int]  # Images and captions
    protocol: str
    published: tuple[Printed, ...]
    # The protocol itself first, then all that were tried, those that reproduce first.
    variants: tuple[Variant, ...]
    # What is not known -> the differences that need it, in words.
    not_tried: Mapping[str, tuple[str, ...]]
    # The share of numbers nearby that at most 0, 1, 2, … differences would explain too.
    by_chance: tuple[float, ...]
    notes: tuple[str, ...] = ()  # Doubts about the scores, and about the published numbers

    def __str__(self) -> str:
        return to_text(self)

    @property
    def statistics(self) -> list[str]:
        """What each published number is, such as t2i R@1."""
        return [str(Statistic(number.direction, str(number.metric))) for number in self.published]

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
    title = wrapped(_title(explanation))
    table = text.to_text(_table(explanation, rows), width=width)
    verdict, *remarks = map(wrapped, _remarks(explanation))
    return "\n".join([title, *table, strong(verdict), *remarks])


def to_markdown(explanation: Explanation, rows: int = 10) -> str:
    """Write the same as Markdown, see `to_text`."""
    title = markdown.escape(_title(explanation))
    table = markdown.rows(_table(explanation, rows))
    remarks = map(markdown.escape, _remarks(explanation))
    return "\n\n".join([title, table, *remarks])


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
        "explained": bool(explanation.reproducing),
        "tried": len(explanation.tried),
        "reproducing": len(explanation.reproducing),
        "by_chance": list(explanation.by_chance),
        "not_tried": {key: list(words) for key, words in explanation.not_tried.items()},
        "variants": [_as_dict(variant, statistics) for variant in explanation.variants],
    }
    if explanation.notes:
        explained["notes"] = list(explanation.notes)
    return explained


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
    if len(explanation.by_chance) > 1:
        some = _share(explanation.by_chance[-1])
        one = _share(explanation.by_chance[1])
        yield (
            f"By chance: random numbers within {NEAR} points of {what} would be matched by some variant "
            f"in {some} of cases, by one with at most one difference in {one}."
        )
    if explanation.not_tried:
        yield _not_tried(explanation)
    yield from explanation.notes


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
        nearest = f"; the nearest is {off}"
    return (
        f"None of {counted(len(explanation.tried), 'variant')} explains {what}{nearest}: the "
        "paper probably measured a different model (another seed or checkpoint, other photographs or "
        "captions), not the same scores differently."
    )


def _not_tried(explanation: Explanation) -> str:
    untried = []
    for lacking, untried_differences in explanation.not_tried.items():
        need = "need"
        if len(untried_differences) == 1:
            need = "needs"
        how_many = counted(len(untried_differences), "difference")
        untried.append(f"{how_many} that {need} {lacking} ({HOW[lacking]})")
    return "Not tried: " + "; ".join(untried)


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

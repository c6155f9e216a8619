"""The answer of `explain`: variants of a measurement, nearest first, as text, Markdown or JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from pipeline.evaluation.metrics import TASKS, Statistic
from pipeline.parts.errors import counted
from pipeline.parts.wrapping import wrapped
from pipeline.report import markdown, text
from pipeline.report.table import Cell, Panel, grid
from pipeline.studies.explain.printed import Printed

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
    variants: tuple[
        Variant, ...
    ]  # The protocol itself first, then all that were tried, those that reproduce first
    not_tried: Mapping[
        str, tuple[str, ...]
    ]  # What is not known -> the differences that need it, in words
    by_chance: tuple[
        float, ...
    ]  # The share of numbers nearby that at most 0, 1, 2, … differences would explain too
    notes: tuple[str, ...] = ()  # Doubts about the scores, and about the published numbers

    def __str__(self) -> str:
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


def to_text(
    found: Explanation, rows: int = 10, width: int | None = None, strong: text.Strong = str
) -> str:
    """Write the protocol's numbers and the nearest variants as a table, and what to think of them.

    width: of the terminal, None for any. strong: writes the verdict.
    """
    verdict, *remarks = map(wrapped, _remarks(found))
    return "\n".join(
        [
            wrapped(_title(found)),
            *text.to_text(_table(found, rows), width=width),
            strong(verdict),
            *remarks,
        ]
    )


def to_markdown(found: Explanation, rows: int = 10) -> str:
    """Write the same as Markdown, see `to_text`."""
    return "\n\n".join(
        [
            markdown.escape(_title(found)),
            markdown.rows(_table(found, rows)),
            *map(markdown.escape, _remarks(found)),
        ]
    )


def to_json(found: Explanation) -> dict[str, Any]:
    """Give all variants that were tried as plain JSON values."""
    names = [str(Statistic(each.direction, str(each.metric))) for each in found.published]
    return {
        "name": found.name,
        "images": found.shape[0],
        "captions": found.shape[1],
        "protocol": found.protocol,
        "published": {
            name: float(each.number) for name, each in zip(names, found.published, strict=True)
        },
        "explained": any(each.reproduces for each in found.variants),
        "tried": len(found.tried),
        "reproducing": len(found.reproducing),
        "by_chance": list(found.by_chance),
        "not_tried": {key: list(each) for key, each in found.not_tried.items()},
        "variants": [_as_dict(each, names) for each in found.variants],
        **({"notes": list(found.notes)} if found.notes else {}),
    }


def _as_dict(variant: Variant, names: list[str]) -> dict[str, Any]:
    return {
        "differences": list(variant.differences),
        **({"direction": variant.direction} if variant.direction else {}),
        "numbers": dict(zip(names, map(float, variant.numbers), strict=True)),
        "distance": float(variant.distance),
        "reproduces": variant.reproduces,
    }


def _title(found: Explanation) -> str:
    return (
        f"{found.name}: {found.shape[0]} images x {found.shape[1]} captions, protocol {found.protocol}; published: "
        f"{', '.join(map(str, found.published))}"
    )


def _table(found: Explanation, rows: int) -> Panel:
    """The protocol's own numbers, then the nearest variants."""
    is_open = any(each.direction for each in found.variants)
    several = len(found.published) > 1
    headings = [
        "",
        *(["direction"] if is_open else []),
        *(str(Statistic(each.direction, str(each.metric))) for each in found.published),
        "off by",
        *(["equal"] if several else []),
    ]

    def row(each: Variant) -> list[str | Cell]:
        words = "; ".join(each.differences) or PROTOCOL
        equal = [f"{each.equal} of {len(each.numbers)}"] if several else []
        return [
            words,
            *([TASKS[each.direction]] if is_open else []),
            *map(Cell, each.numbers),
            Cell(each.distance),
            *equal,
        ]

    nearest = min((each.distance for each in found.references), default=None)
    nearer = [
        each for each in found.tried if nearest is None or each.distance <= nearest
    ]  # the others explain nothing
    return grid(
        headings, {"": [*map(row, found.references), *map(row, nearer[:rows])]}, texts=1 + is_open
    )


def _remarks(found: Explanation) -> Iterator[str]:
    """Say whether something explains the numbers, how many variants do, and how many would by
    chance.
    """
    several = len(found.published) > 1
    what = "the published numbers" if several else "the published number"
    by_difference = [each for each in found.reproducing if each.differences]
    if any(each.reproduces for each in found.references):
        yield f"The protocol itself gives {what}."
    if by_difference:
        count = len(by_difference)
        yield (
            f"{count} of {counted(len(found.tried), 'variant')} give{'s' if count == 1 else ''} {what}: "
            f"{_by_count(found)}."
            + (
                ""
                if count == 1
                else " They cannot be told apart by "
                + (
                    "these numbers alone."
                    if several
                    else "one number; give more of the paper's: R@1=…,R@5=…."
                )
            )
        )
    elif not any(each.reproduces for each in found.references):
        nearest = min(found.variants, key=lambda each: each.distance, default=None)
        yield (
            f"None of {counted(len(found.tried), 'variant')} explains {what}"
            + (f"; the nearest is {nearest.distance} off" if nearest else "")
            + ": more likely other scores were "
            "measured (another seed or checkpoint, other photographs or captions) than these in another way."
        )
    if len(found.by_chance) > 1:
        yield (
            f"By chance: of numbers drawn within {NEAR} of {what}, {_share(found.by_chance[-1])} would be given by "
            f"some variant, {_share(found.by_chance[1])} by at most one difference."
        )
    if found.not_tried:
        yield "Not tried: " + "; ".join(
            f"{counted(len(each), 'difference')} that need{'s' if len(each) == 1 else ''} "
            f"{lacking} ({HOW[lacking]})"
            for lacking, each in found.not_tried.items()
        )
    yield from found.notes


def _by_count(found: Explanation) -> str:
    """How many variants with one difference reproduce, and how many with more."""
    most = max(len(each.differences) for each in found.tried)
    counts = []
    for number in range(1, most + 1):
        of_number = [each for each in found.tried if len(each.differences) == number]
        counts.append(
            f"{sum(each.reproduces for each in of_number)} of {len(of_number)} with "
            f"{counted(number, 'difference')}"
        )
    return ", ".join(counts)


def _share(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 or not share else "less than 1 %"

"""Numbers as a paper prints them: what a user types after --published, or a row of the shipped
tables.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, InvalidOperation
from itertools import pairwise
from pathlib import Path

from pipeline.evaluation.metrics import Metric, Statistic, parse
from pipeline.evaluation.metrics.spelt import spelt
from pipeline.parts.errors import InputError, counted, refusing
from pipeline.report import published
from pipeline.report.published import PublishedRow
from pipeline.systems.scores.foreign import results_file

# The most digits of a number before its point, and the most that are compared after it: tools print
# all of float32's.
LONGEST, DECIMALS = 9, 4
# Rows that a message lists.
LISTED = 6


@dataclass(frozen=True)
class Printed:
    """A published number."""

    metric: Metric
    direction: str  # "i2t" or "t2i"; "" for a metric of both, and where the paper does not say
    number: Decimal  # With the digits that are printed; shares in percent

    def __str__(self) -> str:
        return f"{Statistic(self.direction, str(self.metric))} {self.number}"

    @property
    def name(self) -> str:
        """Its name as it is typed: i2t_R@1, RSUM."""
        return f"{self.direction}_{self.metric}" if self.direction else str(self.metric)

    @property
    def is_open(self) -> bool:
        """Whether its direction is not said."""
        return not self.direction and self.metric.summed is None

    def rounded(self, value: float, how: str) -> Decimal:
        """Round a measured number to the printed digits: "nearest", "truncated" or "coarser" (to a
        digit less).

        An exact half becomes what is printed, if that is one of its two neighbours.
        """
        exact, unit = (
            Decimal(repr(float(value))),
            Decimal(1).scaleb(int(self.number.as_tuple().exponent)),
        )
        if how == "truncated":
            return exact.quantize(unit, ROUND_DOWN)
        if how == "coarser":
            return exact.quantize(unit * 10, ROUND_HALF_EVEN).quantize(unit)
        up, even = exact.quantize(unit, ROUND_HALF_UP), exact.quantize(unit, ROUND_HALF_EVEN)
        return up if up == self.number else even


def read(text: str) -> tuple[list[Printed], PublishedRow | None]:
    """Read published numbers, and the row if they are from one.

    text: "R@1=58.4", several with commas between, "i2t_R@1=58.4,RSUM=500.2"; or a row of a shipped
        table by its number or by words in its cells, "vse_infty_table10:4", "vse_infty_table10:VSE∞
        bert".
    """
    if "=" in text:
        return _checked([_one(part) for part in text.split(",") if part.strip()]), None
    if results := results_file.published(Path(text)):
        raise InputError(
            f"--published {text}: is a file of results; give its numbers, --published {results}"
        )
    table, colon, which = text.partition(":")
    if not colon or not which.strip():
        raise InputError(
            f"--published {text}: expected numbers such as R@1=58.4 or i2t_R@1=58.4,t2i_R@1=37.8, or a "
            "row of a shipped table such as vse_infty_table10:4"
        )
    row = _row(table.strip(), which.strip())
    columns = {statistic: row.value(statistic) for statistic in published.STATISTICS}
    numbers = [
        Printed(parse(name), way, value)
        for (way, name), value in columns.items()
        if value is not None
    ]
    if not numbers:
        raise InputError(f"{table} row {row.number}: prints no recalls of images and captions")
    return _checked(numbers), row


def _one(text: str) -> Printed:
    name, _, value = (part.strip() for part in text.partition("="))
    found = spelt(name)
    if found is None:
        raise InputError(
            f"--published {text.strip()}: expected NAME=NUMBER, such as R@1=58.4 or t2i_R@5=62.4"
        )
    with refusing(InvalidOperation, f"--published {text.strip()}: {value!r} is no number"):
        number = Decimal(value.removesuffix("%").strip())
        if not number.is_finite() or number.adjusted() > LONGEST:
            raise InvalidOperation
    metric, way = parse(found.metric), found.direction
    if metric.asks_for_every or metric.grade is not None:
        raise InputError(
            f"--published {text.strip()}: explain knows metrics of a query's best positive: R@K, MRR, "
            "MedR, MeanR, mean_recall, mR and RSUM"
        )
    if way and metric.summed is not None:
        raise InputError(
            f"--published {text.strip()}: {metric} is of both directions; leave out {found.written}"
        )
    return Printed(metric, way, number)


def _checked(numbers: list[Printed]) -> list[Printed]:
    if len({(each.direction, str(each.metric)) for each in numbers}) < len(numbers):
        raise InputError("--published: names a number twice")
    shares = [each for each in numbers if each.metric.is_share]
    if shares and all(0 < each.number <= each.metric.most and _digits(each) > 2 for each in shares):
        # 0.584 is 58.4 %, as CLIP_benchmark prints it.
        numbers = [
            replace(each, number=each.number.scaleb(2)) if each in shares else each
            for each in numbers
        ]
    for each in numbers:
        least, most = (
            (0, int(each.metric.scale * each.metric.most)) if each.metric.is_share else (0, None)
        )
        if each.number < least or (most is not None and each.number > most):
            between = f"from {least} to {most}" if most is not None else f"{least} or more"
            raise InputError(
                f"--published {each.name}={each.number}: no {each.metric} can be that; it is {between}"
            )
    _refuse_falling(numbers)
    finest = Decimal(1).scaleb(-DECIMALS)
    return [
        replace(each, number=each.number.quantize(finest)) if _digits(each) > DECIMALS else each
        for each in numbers
    ]


def _digits(printed: Printed) -> int:
    return -int(printed.number.as_tuple().exponent)


def _refuse_falling(numbers: Sequence[Printed]) -> None:
    for way in {each.direction for each in numbers}:
        recalls = sorted(
            (each.metric.k, each.number)
            for each in numbers
            if each.direction == way and each.metric.name == "R" and each.metric.k
        )
        for (less, low), (more, high) in pairwise(recalls):
            if high < low:
                lead = f"{way}_" if way else ""
                raise InputError(
                    f"--published: {lead}R@{more} {high} is less than {lead}R@{less} {low}; recalls never "
                    "fall with K"
                )


def _row(table: str, which: str) -> PublishedRow:
    """Find a row of a shipped table by its number, or by words that only its cells have."""
    rows = published.load(table)
    if which.isdecimal():
        if not 0 < int(which) <= len(rows):
            raise InputError(f"{table} has rows 1 to {len(rows)}, received {which}")
        return rows[int(which) - 1]
    words = which.lower().split()
    matching = [
        row
        for row in rows
        if set(words)
        <= {word for cell in row.cells.values() for word in (cell.lower(), *cell.lower().split())}
    ]
    if len(matching) == 1:
        return matching[0]
    shown = "; ".join(_described(row) for row in (matching or rows)[:LISTED])
    raise InputError(
        f"{table}: {counted(len(matching), 'row')} with {which!r}; name one by its number or more words: "
        f"{shown}" + ("; …" if len(matching or rows) > LISTED else "")
    )


def _described(row: PublishedRow) -> str:
    return f"{row.number}: {' '.join(filter(None, (row.cells.get(name, '') for name in published.IDENTITY)))}"


def with_direction(numbers: Iterable[Printed], way: str) -> list[Printed]:
    """The numbers with a direction for those that do not say theirs."""
    return [replace(each, direction=way) if each.is_open else each for each in numbers]

"""Numbers as a paper prints them: what a user types after --published, or a published row."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import (
    ROUND_DOWN,
    ROUND_HALF_DOWN,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    Decimal,
    InvalidOperation,
)
from itertools import pairwise
from pathlib import Path

from pipeline.foundation.evaluation.metrics import Metric, Statistic, parse
from pipeline.foundation.evaluation.metrics.spelt import spelt
from pipeline.foundation.parts.errors import InputError, refusing, similar
from pipeline.judge.systems.scores.foreign import results_file
from pipeline.judge.tables import named_rows, published
from pipeline.judge.tables.published import PublishedRow

# The most digits of a number before its point.
LONGEST = 9
# The most digits after the point that are compared: tools print all of float32's.
DECIMALS = 4
# Measured numbers that differ by less are the same.
EXACT = Decimal("1E-9")


@dataclass(frozen=True)
class Printed:
    """A published number."""

    metric: Metric
    direction: str  # "i2t" or "t2i"; "" for a metric of both, and where the paper does not say
    number: Decimal  # With the digits that are printed; shares in percent
    is_percent: bool = False  # Whether it is typed with %

    def __str__(self) -> str:
        return f"{Statistic(self.direction, str(self.metric))} {self.number}"

    @property
    def name(self) -> str:
        """Its name as it is typed: i2t_R@1, RSUM."""
        if not self.direction:
            return str(self.metric)
        return f"{self.direction}_{self.metric}"

    @property
    def is_open(self) -> bool:
        """Whether its direction is not said."""
        return not self.direction and self.metric.summed is None

    @property
    def digits(self) -> int:
        """How many digits are printed after the point."""
        return -int(self.number.as_tuple().exponent)

    @property
    def unit(self) -> Decimal:
        """One in the last printed digit."""
        return Decimal(1).scaleb(-self.digits)

    @property
    def may_be_fraction(self) -> bool:
        """Whether it is a share that may be from 0 to 1."""
        if self.is_percent or not self.metric.is_share:
            return False
        return 0 < self.number <= self.metric.most and self.digits > 0

    def in_percent(self) -> "Printed":
        """A share from 0 to 1 in percent; other numbers as they are."""
        if not self.metric.is_share:
            return self
        number = self.number.scaleb(2)
        if self.digits < 2:
            number = number.quantize(Decimal(1))
        return replace(self, number=number)

    def rounded(self, value: float, how: str) -> Decimal:
        """Round a measured number to the printed digits: "nearest", "truncated" or "coarser" (to a
        digit less after the point).

        An exact half becomes what is printed, if that is one of its two neighbours: print and numpy
        round halves differently.
        """
        # Sums of floats are a little off a half.
        exact = Decimal(repr(float(value))).quantize(EXACT)
        if how == "truncated":
            return exact.quantize(self.unit, ROUND_DOWN)
        unit = self.unit
        if how == "coarser":
            unit = Decimal(1).scaleb(-max(self.digits - 1, 0))
        for rounding in (ROUND_HALF_UP, ROUND_HALF_DOWN):
            neighbour = exact.quantize(unit, rounding)
            if neighbour == self.number:
                return neighbour.quantize(self.unit)
        return exact.quantize(unit, ROUND_HALF_EVEN).quantize(self.unit)


def read(text: str) -> tuple[list[Printed], PublishedRow | None]:
    """Read published numbers, and the row if they are from one.

    text: "R@1=58.4", several with commas between, "i2t_R@1=58.4,RSUM=500.2"; or a published row by
        its benchmark and words of its name, "flickr30k:VSE∞ RG bert", see `named_rows`; or a file
        of results, FILE:SUBSET:SPLIT of several, see `results_file`.
    """
    results_of_file = results_file.published(text)
    if results_of_file:
        with refusing(InputError, lambda error: f"{text}: {error}"):
            return _typed(results_of_file), None
    if "=" in text:
        return _typed(text), None
    first = text.partition(":")[0].strip()
    is_benchmark = first.lower() in named_rows.BENCHMARKS
    if Path(first).suffix and not Path(first).exists():
        raise InputError(f"--published {text}: no such file{similar(Path(first))}")
    if Path(first).suffix or not (":" in text or is_benchmark):
        raise InputError(
            f"--published {text}: expected numbers such as R@1=58.4 or i2t_R@1=58.4,t2i_R@1=37.8, a "
            f"file of results, or a published row such as {named_rows.EXAMPLE}{similar(Path(first))}"
        )
    row = named_rows.one(text, "--published")
    numbers = []
    for statistic in published.STATISTICS:
        printed_number = row.value(statistic)
        if printed_number is not None:
            numbers.append(Printed(parse(statistic.metric), statistic.direction, printed_number))
    return _checked(numbers), row


def _typed(text: str) -> list[Printed]:
    """Read NAME=NUMBER with commas between."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    _refuse_decimal_comma(parts)
    return _checked(list(map(_one, parts)))


def _refuse_decimal_comma(parts: Sequence[str]) -> None:
    """Refuse a number whose digits after a comma are a part of their own."""
    for before, after in pairwise(parts):
        is_whole = re.search(r"= *\d+$", before)
        if is_whole and re.fullmatch(r"\d+ *%?", after):
            raise InputError(
                f"--published {before},{after}: commas stand between numbers; write a decimal comma as "
                f"a point, {before}.{after}"
            )


def _one(text: str) -> Printed:
    typed_metric, _, typed_number = (typed.strip() for typed in text.partition("="))
    statistic = spelt(typed_metric)
    if statistic is None:
        raise InputError(
            f"--published {text.strip()}: expected NAME=NUMBER, such as R@1=58.4 or t2i_R@5=62.4"
        )
    with refusing(InvalidOperation, f"--published {text.strip()}: {typed_number!r} is no number"):
        number = Decimal(typed_number.removesuffix("%").strip())
        if not number.is_finite() or number.adjusted() > LONGEST:
            raise InvalidOperation
    metric = parse(statistic.metric)
    if statistic.direction and metric.summed is not None:
        raise InputError(
            f"--published {text.strip()}: {metric} is of both directions; leave out {statistic.written}"
        )
    return Printed(metric, statistic.direction, number, typed_number.endswith("%"))


def _checked(numbers: list[Printed]) -> list[Printed]:
    """The numbers with shares in percent and no more digits than are compared, or a refusal."""
    names = {(printed.direction, str(printed.metric)) for printed in numbers}
    if len(names) < len(numbers):
        raise InputError("--published: names a number twice")
    shares = [printed for printed in numbers if printed.metric.is_share]
    if shares and all(map(_is_fraction, shares)):
        numbers = [printed.in_percent() for printed in numbers]
    for printed in numbers:
        _refuse_out_of_range(printed)
    _refuse_falling(numbers)
    return [_shortened(printed) for printed in numbers]


def _is_fraction(share: Printed) -> bool:
    """Whether a share is surely from 0 to 1: 0.584 is 58.4 %, as CLIP_benchmark prints it."""
    return share.may_be_fraction and share.digits > 2


def _shortened(printed: Printed) -> Printed:
    """The number with at most the digits that are compared."""
    if printed.digits <= DECIMALS:
        return printed
    finest = Decimal(1).scaleb(-DECIMALS)
    return replace(printed, number=printed.number.quantize(finest))


def _refuse_out_of_range(printed: Printed) -> None:
    metric = printed.metric
    between = "0 or more"
    most = Decimal("Infinity")
    if metric.is_share:
        most = Decimal(int(metric.scale * metric.most))
        between = f"from 0 to {most}"
    if not 0 <= printed.number <= most:
        raise InputError(
            f"--published {printed.name}={printed.number}: no {metric} can be that; it is {between}"
        )


def _refuse_falling(numbers: Sequence[Printed]) -> None:
    for direction in {printed.direction for printed in numbers}:
        recalls = [
            printed
            for printed in numbers
            if printed.direction == direction and printed.metric.name == "R" and printed.metric.k
        ]
        recalls.sort(key=lambda recall: (recall.metric.k or 0, recall.number))
        for recall_below, recall_above in pairwise(recalls):
            if recall_above.number < recall_below.number:
                raise InputError(
                    f"--published: {recall_above.name} {recall_above.number} is less than {recall_below.name} "
                    f"{recall_below.number}; recalls never fall with K"
                )


def with_direction(numbers: Iterable[Printed], way: str) -> list[Printed]:
    """The numbers with a direction for those that do not say theirs."""
    return [replace(printed, direction=way) if printed.is_open else printed for printed in numbers]

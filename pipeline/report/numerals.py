"""How numbers are printed."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal


@dataclass(frozen=True)
class Number:
    """A number as it is printed.

    Attributes:
        value: The number, rounded; None where a paper prints '-'.
        spread: The standard deviation over seeds that follows ±; None for a single seed.
        marks: Its footnote marks.
        text: What is printed where that is not the value itself.
    """

    value: Decimal | None = None
    spread: Decimal | None = None
    marks: tuple[str, ...] = ()
    text: str = ""


def rounded(value: float, places: int = 1) -> Decimal:
    """Round half to even, as Python and NumPy do.

    The half is judged on the shortest decimal that reads back as the same float (what Python and JSON print), not on
    its binary expansion: 0.25 -> 0.2 and 0.35 -> 0.4, as one would round by hand.

    Args:
        value: A finite number.
        places: Decimals to keep.

    Returns:
        The rounded number with exactly `places` decimals.
    """
    return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)


def significant(value: float) -> str:
    """Print a ratio.

    Args:
        value: A positive number.

    Returns:
        One decimal below 100, three significant digits above: 4.9, 147, 147,000.
    """
    if value < 99.95:
        return str(rounded(value))
    digits = max(0, len(str(round(value))) - 3)
    return f"{round(value, -digits):,.0f}"


def signed(value: Decimal) -> str:
    """Print a difference with its sign.

    Args:
        value: The difference.

    Returns:
        For example +1.5, −0.3 or 0.0 (never −0.0).
    """
    if value == 0:
        return str(abs(value))
    return f"+{value}" if value > 0 else f"−{abs(value)}"

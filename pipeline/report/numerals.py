"""How numbers are printed."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal


@dataclass(frozen=True)
class Number:
    """A number as it is shown: `value` is None where a paper prints '-'; `spread` follows ±; `marks` are its
    footnotes."""

    value: Decimal | None = None
    spread: Decimal | None = None
    marks: tuple[str, ...] = ()


def rounded(value: float, places: int = 1) -> Decimal:
    """`value` to `places` decimals, an exact half to the even digit, as Python and NumPy round.

    The half is judged on the shortest decimal that reads back as the same float (what Python and JSON print),
    not on its binary expansion: 0.25 -> 0.2 and 0.35 -> 0.4, as one would do it by hand.
    """
    return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)


def significant(value: float) -> str:
    """A ratio: one decimal below 100, else three significant digits: 4.9, 147, 147,000."""
    if value < 99.95:
        return str(rounded(value))
    digits = max(0, len(str(round(value))) - 3)
    return f"{round(value, -digits):,.0f}"


def signed(value: Decimal) -> str:
    """A difference with its sign: +1.5, −0.3, 0.0 (never −0.0)."""
    if value == 0:
        return str(abs(value))
    return f"+{value}" if value > 0 else f"−{abs(value)}"

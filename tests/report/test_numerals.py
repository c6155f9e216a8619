"""How numbers are printed."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pipeline.judge.tables.table import Cell, number, rounded, significant, to_digits


@pytest.mark.specification
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.25, "0.2"),
        (0.35, "0.4"),
        (0.05, "0.0"),
        (63.449999, "63.4"),
        (100, "100.0"),
        (527.8, "527.8"),
    ],
)
def test_an_exact_half_goes_to_the_even_digit(value: float, shown: str) -> None:
    assert str(rounded(value)) == shown


def test_places() -> None:
    assert str(rounded(0.0125, places=3)) == "0.012"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.0, "1.0"), (99.94, "99.9"), (99.96, "100"), (147.4, "147"), (147_384.0, "147,000")],
)
def test_ratios_keep_three_digits(value: float, shown: str) -> None:
    assert Cell(significant(value)).text == shown


@pytest.mark.parametrize(
    ("value", "shown"), [("1.5", "+1.5"), ("-0.3", "−0.3"), ("-0.0", "0.0"), ("1234.5", "+1,234.5")]
)
def test_signs(value: str, shown: str) -> None:
    assert Cell(Decimal(value), is_difference=True).text == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.000909, "0.000909"), (0.01234, "0.0123"), (0.05, "0.05"), (1.0, "1")]
)
def test_significant_digits(value: float, shown: str) -> None:
    assert str(to_digits(value, 3)) == shown


def test_an_interval_follows_its_number_with_its_signs() -> None:
    assert str(number(3.25, (-0.04, 6.0), is_difference=True)) == "+3.2 [0.0, +6.0]"
    assert str(number(410.0, spread=2.34)) == "410.0 ± 2.3"

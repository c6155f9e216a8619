"""The published tables: complete, adding up, and every row that does not is named."""

from __future__ import annotations

from decimal import Decimal
from importlib.resources import files

import pytest

from pipeline.errors import InputError
from pipeline.report import published

NAMES = sorted(
    entry.name.removesuffix(".csv")
    for entry in (files("manifests") / "published").iterdir()
    if entry.name.endswith(".csv") and entry.name != "inconsistent.csv"
)


@pytest.mark.parametrize("name", NAMES)
def test_every_file_reads(name: str) -> None:
    rows = published.load(name)
    assert rows
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))


def test_rows_listed_as_sums_are_those_that_do_not_add_up() -> None:
    failing = {
        (row["paper"], row["table"], row.number)
        for name in NAMES
        for row in published.load(name)
        if (total := row.recall_sum()) is not None
        and (rsum := row.value("rsum")) is not None
        and abs(total - rsum) > published.TOLERANCE
    }
    listed = {(d.paper, d.table, d.row) for d in published.inconsistencies() if d.kind == "sum"}
    assert failing == listed == {("vse2ad", "1", 5), ("vse2ad", "1", 39), ("vse2ad", "1", 41)}


def test_doubts_name_the_row_they_stand_at() -> None:
    rows = {
        (row["paper"], row["table"], row.number): row
        for name in NAMES
        for row in published.load(name)
        if "table" in row.cells
    }
    for doubt in published.inconsistencies():
        row = rows[doubt.paper, doubt.table, doubt.row]
        assert doubt in row.doubts
        assert {column: row[column] for column in doubt.found_by} == doubt.found_by
        assert doubt.printed in {row[column] for column in doubt.columns}
        if doubt.kind == "sum":
            assert Decimal(doubt.computed) == row.recall_sum()


def test_exchanging_the_two_cells_in_doubt_makes_both_sums_right() -> None:
    rows = {row["method"]: row for row in published.load("vse2ad_table1") if row.number in (39, 41)}
    shift = Decimal(rows["DIME(i2t)"]["t2i_r1"]) - Decimal(rows["VSE+2AD"]["t2i_r1"])
    for method, sign in (("DIME(i2t)", -1), ("VSE+2AD", 1)):
        assert (rows[method].recall_sum() or 0) + sign * shift == rows[method].value("rsum")


def test_unknown_table_is_refused() -> None:
    with pytest.raises(InputError, match="no published table nothing"):
        published.load("nothing")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rsum": "500.0"}, "sum to 527.8"),
        ({"i2t_r5": "79.0"}, "fall with K"),
        ({"i2t_r5": "many"}, "write a number as printed"),
        ({"t2i_r10": "196.3"}, "0 to 100"),
    ],
)
def test_wrong_rows_are_refused(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], message: str
) -> None:
    good = dict(published.load("vse2ad_table1")[9].cells)
    monkeypatch.setattr(published, "_read", lambda name: [] if "inconsistent" in name else [good | changed])
    published.load.cache_clear()
    published.inconsistencies.cache_clear()
    try:
        with pytest.raises(InputError, match=message):
            published.load("vse2ad_table1")
    finally:
        published.load.cache_clear()
        published.inconsistencies.cache_clear()

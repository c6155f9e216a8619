"""Results as the papers print them: the files in `manifests/published`, checked when they are read.

Every row that prints six recalls and an RSUM must add up to within `TOLERANCE`, or be listed in
`inconsistent.csv`, so that no table can show it without saying so. The cells themselves are never
corrected.
"""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.resources import files

from pipeline.foundation.evaluation.metrics import RSUM, STATISTICS, TASKS, Statistic
from pipeline.foundation.parts.errors import InputError, refusing, unknown

RECALLS = STATISTICS[:-1]
LANGUAGES = ("en", "de", "fr", "cs")
# How the files name directions, those of clips v2t and t2v.
DIRECTIONS = {way: way for way in TASKS} | {"v2t": "i2t", "t2v": "t2i"}


def _columns() -> dict[str, str]:
    columns = {"rsum": str(RSUM)}
    for language in LANGUAGES:
        columns[language] = str(Statistic(language, "mR"))
    for name, way in DIRECTIONS.items():
        for k in (1, 5, 10):
            columns[f"{name}_r{k}"] = str(Statistic(way, f"R@{k}"))
    return columns


# How they name a number's column -> its name here.
COLUMNS = _columns()
IDENTITY = ("dataset", "text_encoder", "visual_feature", "method")
# Largest |sum of six recalls - RSUM| that rounding to one decimal explains, in percentage points.
TOLERANCE = Decimal("0.15")


@dataclass(frozen=True)
class Inconsistency:
    """One line of `inconsistent.csv`: a row that disagrees with itself or with another paper.

    Attributes:
        paper, table, row: where it stands; rows count from 1.
        kind: `sum` (the recalls do not add up to the RSUM), `implied` (the cells that are not
            printed would be odd), `elsewhere` (another paper prints another number) or `within`
            (other cells of the same paper, or its released code, contradict it).
        columns: The cells in doubt.
        printed, computed: the number as printed and the one beside it; `elsewhere` and `within`:
            one for each of `columns`, with spaces between.
        believed: What is probably meant, and why.
        found_by: Cells of the row, so that a person finds it.
    """

    paper: str
    table: str
    row: int
    kind: str
    columns: tuple[str, ...]
    printed: str
    computed: str
    believed: str
    found_by: Mapping[str, str]

    @property
    def note(self) -> str:
        """The note below a table that shows one of its cells."""
        if self.kind == "sum":
            return (
                f"As printed; the six recalls of this row sum to {self.computed}, its RSUM is printed as "
                f"{self.printed}. Probably meant: {self.believed}."
            )
        if self.kind == "elsewhere":
            return f"As printed; other papers disagree: {self.believed}."
        return f"As printed; in doubt: {self.believed}."


@dataclass(frozen=True)
class PublishedRow:
    """One row of a printed table."""

    number: int  # its number in the file, from 1
    cells: Mapping[str, str]  # column -> the text as printed, "" where the paper has '-'
    doubts: tuple[Inconsistency, ...] = ()  # the lines of `inconsistent.csv` about it

    def __getitem__(self, column: str) -> str:
        return self.cells[column]

    @property
    def label(self) -> str:
        """Its name: CE (OSCAR) for CE^OSCAR; in the file, ^ comes before text that the paper prints
        raised.
        """
        name, _, raised = self["method"].partition("^")
        if not raised:
            return name
        return f"{name} ({raised.replace('_', ', ')})"

    def value(self, column: Statistic) -> Decimal | None:
        """The number in a column, None where the paper prints '-' or the table has no such
        column.
        """
        printed_cell = self.cells.get(str(column), "")
        if not printed_cell:
            return None
        return Decimal(printed_cell)

    def recall_sum(self) -> Decimal | None:
        """The sum of the six recalls in percent, None if one of them is not printed."""
        sum_of_recalls = Decimal()
        for column in RECALLS:
            recall = self.value(column)
            if recall is None:
                return None
            sum_of_recalls += recall
        return sum_of_recalls


@cache
def load(table: str) -> tuple[PublishedRow, ...]:
    """Read and check a published table of `manifests/published`, by its file's name without
    ending.
    """
    rows = []
    for number, cells in enumerate(_read(f"{table}.csv"), start=1):
        place = (cells["paper"], cells.get("table"), number)
        doubts = []
        for doubt in inconsistencies():
            if (doubt.paper, doubt.table, doubt.row) == place:
                doubts.append(doubt)
        row = PublishedRow(number, cells, tuple(doubts))
        _check(row, where=f"{table}.csv row {number}")
        rows.append(row)
    return tuple(rows)


@cache
def training_curve() -> tuple[Mapping[str, float], ...]:
    """Read the points of VSE+2AD's Figure A.2-1.

    Its axis shows two panels and does not print the points' epochs. The first panel's ten are taken
    as epochs 1 to 10, the second's thirteen as the last of 25.
    """
    first_epochs = {"early": 1, "late": 13}
    points_of_curve = []
    for cells in _read("vse2ad_figA2.csv"):
        epochs = first_epochs[cells["panel"]] + int(cells["point_index"])
        point: dict[str, float] = {"epochs": epochs}
        for column in ("with_adopt", "without_adopt"):
            point[column] = float(cells[column])
        points_of_curve.append(point)
    return tuple(points_of_curve)


@cache
def inconsistencies() -> tuple[Inconsistency, ...]:
    """Read `inconsistent.csv`."""
    doubts = []
    for cells in _read("inconsistent.csv"):
        columns = [COLUMNS.get(name, name) for name in cells["columns"].split()]
        found_by = {column: cells[column] for column in IDENTITY if cells[column]}
        doubt = Inconsistency(
            paper=cells["paper"],
            table=cells["table"],
            row=int(cells["row"]),
            kind=cells["kind"],
            columns=tuple(columns),
            printed=cells["printed"],
            computed=cells["computed"],
            believed=cells["believed"],
            found_by=found_by,
        )
        doubts.append(doubt)
    return tuple(doubts)


def text(name: str) -> str:
    """Read a file of `manifests/published`."""
    folder = files("manifests") / "published"
    source = folder / name
    if not source.is_file():
        tables = [file.name.removesuffix(".csv") for file in folder.iterdir() if "_" in file.name]
        asked = name.removesuffix(".csv")
        raise unknown("published table", asked, sorted(tables), "manifests/published")
    return source.read_text(encoding="utf-8")


def _read(name: str) -> list[dict[str, str]]:
    published_rows = []
    for printed_row in csv.DictReader(io.StringIO(text(name))):
        published_rows.append(
            {COLUMNS.get(column, column): cell for column, cell in printed_row.items()}
        )
    return published_rows


def _check(row: PublishedRow, where: str) -> None:
    for column in STATISTICS:
        _check_number(row, column, where)
    for side in ("i2t", "t2i"):
        recalls = [row.value(Statistic(side, f"R@{k}")) for k in (1, 5, 10)]
        printed = [value for value in recalls if value is not None]
        if printed != sorted(printed):
            raise InputError(
                f"{where}: {side} recalls {printed} fall with K; R@1 <= R@5 <= R@10 always holds"
            )
    sum_of_recalls = row.recall_sum()
    rsum = row.value(RSUM)
    is_doubted = any(doubt.kind == "sum" for doubt in row.doubts)
    if sum_of_recalls is None or rsum is None or is_doubted:
        return
    if abs(sum_of_recalls - rsum) > TOLERANCE:
        raise InputError(
            f"{where}: the six recalls sum to {sum_of_recalls}, not to {rsum}; list it in inconsistent.csv"
        )


def _check_number(row: PublishedRow, column: Statistic, where: str) -> None:
    refusal = f"{where}: {column} is {row.cells.get(str(column))!r}; write a number or nothing"
    with refusing(InvalidOperation, refusal):
        printed_number = row.value(column)
    largest = 600 if column == RSUM else 100
    if printed_number is not None and not 0 <= printed_number <= largest:
        raise InputError(
            f"{where}: {column} is {printed_number}; a recall is from 0 to 100, an RSUM from 0 to 600"
        )

"""Tables 3 and 4 of Geigle et al.: the time of a query, and of an evaluation, with what is extrapolated marked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.errors import InputError
from pipeline.report import published
from pipeline.report.measured import Results
from pipeline.report.table import MISSING, Cell, Column, Note, Panel, RowGroup, Table, TableRow
from pipeline.report.table_request import TableRequest

METHODS = ("EMB", "SEP/JOIN+CO", "CE")
SIZES = {"1k": 1_000, "5k": 5_000, "50k": 50_000, "100k": 100_000, "1M": 1_000_000}
"""As the paper prints them -> images."""
CAPTIONS = 5  # an image, as MS-COCO
EXTRAPOLATED = "*"
UNITS = (("a", 365.25 * 86400, 1.0), ("d", 86400.0, 3.0), ("h", 3600.0, 2.0), ("min", 60.0, 2.0), ("s", 1.0, 1.0),
         ("ms", 0.001, 0.0))
"""Unit, its seconds, and from how many of it on a time is printed in it."""


@dataclass(frozen=True)
class Rates:
    """How fast things are here, of the part `latency` of results/throughput.json.

    Attributes:
        machine: Where it was measured.
        pooled: Seconds to pool an image.
        encode: Seconds to encode a caption alone.
        search: Images -> seconds to search them all for one query.
        pairs: How many pairs are reranked at once.
        rerank: Seconds that these take.
        how: How it was measured.
        busy: Whether other work ran meanwhile.
        query: What one query took with a real scorer, in words; "" where none was timed.
    """

    machine: str
    pooled: float
    encode: float
    search: Mapping[int, float]
    pairs: int
    rerank: float
    how: str
    busy: bool
    query: str = ""

    def latency(self, method: str, images: int) -> tuple[float, bool] | None:
        """Seconds of one query.

        Args:
            method: One of `METHODS`.
            images: How many are searched.

        Returns:
            The seconds, and whether they are extrapolated; None where a search among so many was not timed.
        """
        if method == "CE":
            return images * self.rerank / self.pairs, True
        if images not in self.search:
            return None
        searched = self.encode + self.search[images]
        return (searched, False) if method == "EMB" else (searched + self.rerank, True)

    def evaluation(self, method: str, images: int) -> tuple[float, bool]:
        """Seconds of an evaluation in both directions.

        Args:
            method: One of `METHODS`.
            images: How many there are, with `CAPTIONS` captions each.

        Returns:
            The seconds, always extrapolated: from the time of an image, a caption, a similarity and a pair.
        """
        if method == "CE":
            return scored_pairs(method, images) * self.rerank / self.pairs, True
        largest = max(self.search)
        embedded = images * self.pooled + CAPTIONS * images * self.encode
        searched = 2 * CAPTIONS * images ** 2 * self.search[largest] / largest
        reranked = scored_pairs(method, images, self.pairs) * self.rerank / self.pairs
        return embedded + searched + reranked, True


def scored_pairs(method: str, images: int, k: int = 20) -> int:
    """How many pairs an evaluation in both directions scores.

    Args:
        method: One of `METHODS`.
        images: How many there are, with `CAPTIONS` captions each.
        k: Candidates of a query that are reranked.

    Returns:
        0 for embeddings, k for each query, or every image with every caption.
    """
    return {"EMB": 0, "CE": CAPTIONS * images ** 2}.get(method, k * (1 + CAPTIONS) * images)


def build_latency(results: Results, request: TableRequest) -> Table:
    """Build Table 3.

    Args:
        results: What was measured; the table reads `results.throughput`.
        request: Which rows are shown.

    Returns:
        The published rows, and below them the measured ones.

    Raises:
        InputError: If the throughput cannot be read.
    """
    sizes, rates = ("50k", "1M"), _rates(results.throughput) if request.measured else None
    printed = _published("rerank_table3", "latency", sizes) if request.published else []
    mine = [] if rates is None else [_row(method, rates.machine, [rates.latency(method, SIZES[size]) for size in sizes])
                                     for method in METHODS]
    caption = ("Time of one text query among 50,000 and 1,000,000 images, after Table 3 of Geigle et al.: embeddings "
               "(EMB), their best 20 reranked by a cross-encoder (SEP/JOIN+CO), a cross-encoder alone (CE).")
    notes = [Note("The paper's times are estimates, as it says.")] * bool(printed)
    notes += [Note(rates.query)] if rates and rates.query else []
    doubts = [Note(f"As printed; in doubt: {doubt.believed}.", mark)
              for mark, doubt in zip("ab", _doubts("rerank_table3"), strict=False)] if printed else []
    scored = "SEP/JOIN+CO: pairs from the time of one layer. CE: that rate of pairs times the images."
    return _table("rerank_table3", sizes, printed, mine, caption, [*doubts, *notes], rates, scored)


def build_evaluation(results: Results, request: TableRequest) -> Table:
    """Build Table 4.

    Args:
        results: What was measured; the table reads `results.throughput`.
        request: Which rows are shown.

    Returns:
        The published rows, and below them the measured ones, all of them extrapolated.

    Raises:
        InputError: If the throughput cannot be read.
    """
    sizes, rates = ("1k", "5k", "100k"), _rates(results.throughput) if request.measured else None
    printed = _published("rerank_table4", "eval_time", sizes) if request.published else []
    mine = [] if rates is None else [
        _row(method, rates.machine, [rates.evaluation(method, SIZES[size]) for size in sizes]) for method in METHODS]
    counts = "; ".join(f"{method} {', '.join(f'{scored_pairs(method, SIZES[size]):,}' for size in sizes)}"
                       for method in METHODS[1:])
    caption = ("Time of an evaluation in both directions, with 1,000, 5,000 and 100,000 images of five captions each, "
               "after Table 4 of Geigle et al.")
    notes = [Note(f"Pairs that are scored: {counts}.")]
    scored = ("All measured rows: from the time of one image's pooling, one caption, one similarity and "
              "one pair; images are not put through the network that makes their features. Captions are encoded and "
              "searched one at a time, the paper's in batches of 512, with which EMB would be several times faster.")
    return _table("rerank_table4", sizes, printed, mine, caption, notes, rates, scored)


def _table(name: str, sizes: Sequence[str], printed: Sequence[TableRow], mine: Sequence[TableRow], caption: str,
           notes: Sequence[Note], rates: Rates | None, extrapolated: str) -> Table:
    columns = (Column("Method", kind="text"), Column("Hardware", kind="text"),
               *(Column(f"{size} images", kind="text") for size in sizes))
    groups = [RowGroup(tuple(printed))] * bool(printed)
    groups += [RowGroup(tuple(mine), "Measured here" if printed else "")] * bool(mine)
    marks = {mark for group in groups for row in group.rows for cell in row.cells for mark in cell.marks}
    said = "Extrapolated, of published rows by the authors." if rates is None else f"Extrapolated. {extrapolated}"
    under = [*notes, *[Note(said, EXTRAPOLATED)] * (EXTRAPOLATED in marks)]
    if rates is not None and mine:
        under += [Note(rates.how)] + [Note("Other work ran on the machine meanwhile; time it again.")] * rates.busy
    return Table(name, (Panel(columns, tuple(groups), caption, tuple(under)),) * bool(groups))


def _published(table: str, column: str, sizes: Sequence[str]) -> list[TableRow]:
    marks = dict(zip([doubt.row for doubt in _doubts(table)], "ab", strict=False))
    cells: dict[tuple[str, str], dict[str, Cell]] = {}
    for row in published.load(table):
        starred = row.cells.get("extrapolated") == "1"
        noted = (EXTRAPOLATED,) * starred + tuple(marks[row.number] for _ in row.doubts[:1])
        cells.setdefault((row["method"], row["hardware"]), {})[row["n_images"]] = Cell(row[column], marks=noted)
    hardware = list(dict.fromkeys(machine for _, machine in cells))
    ordered = sorted(cells, key=lambda key: (hardware.index(key[1]), METHODS.index(key[0])))
    return [TableRow((*map(Cell, key), *(cells[key][size] for size in sizes))) for key in ordered]


def _doubts(table: str) -> list[published.Inconsistency]:
    return [doubt for row in published.load(table) for doubt in row.doubts]


def _row(method: str, machine: str, times: Sequence[tuple[float, bool] | None]) -> TableRow:
    cells = [Cell(MISSING) if time is None else Cell(printed(time[0]), marks=(EXTRAPOLATED,) * time[1])
             for time in times]
    return TableRow((Cell("EMB (BiGRU)" if method == "EMB" else method), Cell(machine), *cells))


def printed(seconds: float) -> str:
    """Print a time as the paper does.

    Args:
        seconds: A positive number.

    Returns:
        Two significant digits at most below 10, else whole numbers: 16ms, 1.6s, 36min, 2.4h, 2.3a.
    """
    unit, size, _ = next(each for each in UNITS if seconds >= each[1] * each[2])
    number = seconds / size
    return f"{number:.1f}{unit}" if number < 9.95 else f"{number:,.0f}{unit}"


def _query(throughput: Mapping[str, Any]) -> str:
    """What one query took with a real scorer."""
    if not (said := throughput.get("query")):
        return ""
    return (f"Measured with models of this run: one query among {int(said['images']):,} images takes "
            f"{printed(float(said['retrieve']))} by {said['retriever']}, and {printed(float(said['both']))} with its "
            f"best {int(said['k'])} reranked by {said['scorer']}: {float(said['ratio']):.1f} times.")


def _rates(throughput: Mapping[str, Any]) -> Rates | None:
    """None where nothing was timed, or by an earlier version."""
    if "latency" not in throughput:
        return None
    try:
        said = throughput["latency"]
        rates = Rates(str(throughput["made_with"]["machine"]), 1 / float(said["images_per_second"]),
                      float(said["encode"]), {int(size): float(taken) for size, taken in said["search"].items()},
                      int(said["pairs"]), float(said["rerank"]), str(throughput["methods"]["latency"]),
                      bool(throughput.get("busy")), _query(throughput))
        if not all(0 < value < math.inf for value in (rates.pooled, rates.encode, rates.pairs, rates.rerank,
                                                      *rates.search.values())) or not rates.search:
            raise ValueError("a time that is no number above 0")
        return rates
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise InputError(f"throughput cannot be read at {error}; run `pipeline throughput` again") from None

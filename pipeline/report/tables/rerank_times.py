"""Tables 3 and 4 of Geigle et al.: the time of a query, and of an evaluation, with what is extrapolated marked."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.parts.errors import InputError
from pipeline.report import emphasis, published
from pipeline.report.measured import Results
from pipeline.report.result_rows import ResultRow, RowHeader
from pipeline.report.retrieval_table import Layout
from pipeline.report.table import Note, Number, Table, TableRequest
from pipeline.report.table_columns import NumberColumn, TableColumns

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
    """How fast things are here, of the part `latency` of results/throughput.json."""

    machine: str
    pooled: float  # seconds to pool an image
    encode: float  # seconds to encode a caption alone
    search: Mapping[int, float]  # images -> seconds to search them all for one query
    pairs: int  # that are reranked at once
    rerank: float  # seconds that these take
    how: str  # it was measured
    busy: bool  # whether other work ran meanwhile
    query: str = ""  # what one query took with a real scorer, in words; "" where none was timed

    def latency(self, method: str, images: int) -> tuple[float, bool] | None:
        """Seconds of one query, and whether they are extrapolated; None where a search among so many was not timed."""
        if method == "CE":
            return images * self.rerank / self.pairs, True
        if images not in self.search:
            return None
        searched = self.encode + self.search[images]
        return (searched, False) if method == "EMB" else (searched + self.rerank, True)

    def evaluation(self, method: str, images: int) -> tuple[float, bool]:
        """Seconds of an evaluation in both directions, always extrapolated: from an image, a caption and a pair."""
        if method == "CE":
            return scored_pairs(method, images) * self.rerank / self.pairs, True
        largest = max(self.search)
        embedded = images * self.pooled + CAPTIONS * images * self.encode
        searched = 2 * CAPTIONS * images ** 2 * self.search[largest] / largest
        reranked = scored_pairs(method, images, self.pairs) * self.rerank / self.pairs
        return embedded + searched + reranked, True


def scored_pairs(method: str, images: int, k: int = 20) -> int:
    """How many pairs an evaluation in both directions scores, with `CAPTIONS` captions an image and k candidates."""
    return {"EMB": 0, "CE": CAPTIONS * images ** 2}.get(method, k * (1 + CAPTIONS) * images)


def _pairs(sizes: Sequence[str]) -> str:
    counts = "; ".join(f"{method} {', '.join(f'{scored_pairs(method, SIZES[size]):,}' for size in sizes)}"
                       for method in METHODS[1:])
    return f"Pairs that are scored: {counts}."


@dataclass(frozen=True, kw_only=True)
class TimeTable:
    """One of the two tables.

    Attributes:
        name: Its key in `TABLES` and the file of its published rows.
        caption: What it shows.
        sizes: The numbers of images, keys of `SIZES`.
        column: The times' column of the published file.
        time: Measured seconds of a method and a number of images, and whether they are extrapolated.
        extrapolated: How measured times are extrapolated.
        note: Said whatever rows are shown, "" for nothing.
        note_of_published: Said of the published rows, "" for nothing.
    """

    name: str
    caption: str
    sizes: tuple[str, ...]
    column: str
    time: Callable[[Rates, str, int], tuple[float, bool] | None]
    extrapolated: str
    note: str = ""
    note_of_published: str = ""

    def build(self, results: Results, request: TableRequest) -> Table:
        """Fill the table."""
        rates = _rates(results.throughput) if request.measured else None
        above = self._published() if request.published else []
        below = [] if rates is None else [self._measured(method, rates) for method in METHODS]
        under = [self.note, *[self.note_of_published] * bool(above), rates.query if rates else ""]
        notes = [Note(text) for text in under if text]
        if any(EXTRAPOLATED in number.marks for row in (*above, *below) for number in row.numbers.values()):
            said = "Extrapolated, of published rows by the authors." if rates is None else \
                f"Extrapolated. {self.extrapolated}"
            notes.append(Note(said, EXTRAPOLATED))
        if rates is not None:
            notes += [Note(rates.how)] + [Note("Other work ran on the machine meanwhile; time it again.")] * rates.busy
        doubts = [Note(f"As printed; in doubt: {text}.", mark) for mark, text in self._doubts().values()]
        single = tuple(NumberColumn((self.name, size), f"{size} images", kind="text") for size in self.sizes)
        columns = TableColumns(("Method", "Hardware"), ((self.name, ""),), rsum=False, single=single)
        layout = Layout(name=self.name, caption=self.caption, columns=columns, emphasis=emphasis.none)
        panel = layout.panel(above, below, doubts if above else (), notes)
        return Table(self.name, (panel,) * bool(panel.groups))

    def _doubts(self) -> dict[int, tuple[str, str]]:
        """Number of a published row in doubt -> its mark, and what is believed."""
        doubts = [doubt for row in published.load(self.name) for doubt in row.doubts]
        return {doubt.row: (mark, doubt.believed) for mark, doubt in zip("ab", doubts, strict=False)}

    def _published(self) -> list[ResultRow]:
        doubts = self._doubts()
        rows: dict[RowHeader, ResultRow] = {}
        for line in published.load(self.name):
            header = RowHeader((line["method"], line["hardware"]))
            marks = (EXTRAPOLATED,) * (line.cells.get("extrapolated") == "1")
            marks += (doubts[line.number][0],) if line.number in doubts else ()
            number = Number(text=line[self.column], marks=marks)
            rows.setdefault(header, ResultRow(header)).numbers[self.name, line["n_images"]] = number
        hardware = list(dict.fromkeys(header.labels[1] for header in rows))
        return sorted(rows.values(), key=lambda row: (hardware.index(row.header.labels[1]),
                                                      METHODS.index(row.header.labels[0])))

    def _measured(self, method: str, rates: Rates) -> ResultRow:
        row = ResultRow(RowHeader(("EMB (BiGRU)" if method == "EMB" else method, rates.machine)))
        for size in self.sizes:
            if (found := self.time(rates, method, SIZES[size])) is not None:
                number = Number(text=printed(found[0]), marks=(EXTRAPOLATED,) * found[1])
                row.numbers[self.name, size] = number
        return row


def printed(seconds: float) -> str:
    """A time as the paper prints it, with at most two significant digits below 10: 16ms, 1.6s, 36min, 2.4h, 2.3a."""
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


OF_AN_EVALUATION = ("1k", "5k", "100k")
TABLE3 = TimeTable(
    name="rerank_table3", sizes=("50k", "1M"), column="latency", time=Rates.latency,
    caption="Time of one text query among 50,000 and 1,000,000 images, after Table 3 of Geigle et al.: embeddings "
    "(EMB), their best 20 reranked by a cross-encoder (SEP/JOIN+CO), a cross-encoder alone (CE).",
    extrapolated="SEP/JOIN+CO: pairs from the time of one layer. CE: that rate of pairs times the images.",
    note_of_published="The paper's times are estimates, as it says.",
)
TABLE4 = TimeTable(
    name="rerank_table4", sizes=OF_AN_EVALUATION, column="eval_time", time=Rates.evaluation,
    caption="Time of an evaluation in both directions, with 1,000, 5,000 and 100,000 images of five captions each, "
    "after Table 4 of Geigle et al.",
    extrapolated="All measured rows: from the time of one image's pooling, one caption, one similarity and one pair; "
    "images are not put through the network that makes their features. Captions are encoded and searched one at a "
    "time, the paper's in batches of 512, with which EMB would be several times faster.",
    note=_pairs(OF_AN_EVALUATION),
)

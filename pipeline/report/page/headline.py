"""The table of results: each system's recalls and RSUM, with intervals or the spread over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.report import names
from pipeline.report.measured import Measured, read
from pipeline.report.networks import stand_ins
from pipeline.report.numerals import rounded
from pipeline.report.published import COLUMNS


@dataclass(frozen=True)
class Number:
    """A number as it is shown, and what follows it: [low, high] in `low` and `high`, or a `spread` over seeds."""

    text: str
    low: str = ""
    high: str = ""
    spread: str = ""


@dataclass(frozen=True)
class Span:
    """Where a row's RSUM and its interval lie between the table's least and greatest, in percent of the width."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """One system over its seeds. numbers: by column, i2t_r1 … rsum; stand_ins: networks that are not the papers'."""

    method: str
    text: str
    visual: str
    seeds: int
    systems: Sequence[str]
    numbers: Mapping[str, Number]
    stand_ins: Sequence[str]
    best: frozenset[str]
    span: Span

    @property
    def first(self) -> bool:
        """Whether its RSUM is the best of the table."""
        return "rsum" in self.best


@dataclass(frozen=True)
class Headline:
    """One test set by one protocol."""

    dataset: str
    split: str
    protocol: str
    images: int
    captions: int
    rows: Sequence[Row]

    @property
    def data(self) -> str:
        """The data set's name for readers."""
        return names.DATASETS.get(self.dataset, self.dataset)

    @property
    def stand_ins(self) -> list[str]:
        """What made features in the place of the papers' networks."""
        return sorted({told for row in self.rows for told in row.stand_ins})


def headlines(metrics: Mapping[str, Any]) -> list[Headline]:
    """The tables of the parsed `results/metrics.json`. Raises InputError where it cannot be read."""
    tables: dict[tuple[str, str, str, int, int], list[Measured]] = {}
    for system in read(metrics):
        o = system.origin
        tables.setdefault((o.dataset, o.split, o.protocol, o.images, o.captions), []).append(system)
    return [Headline(dataset, split, protocol, images, captions, _rows(systems, metrics))
            for (dataset, split, protocol, images, captions), systems in tables.items()]


def _rows(systems: Sequence[Measured], metrics: Mapping[str, Any]) -> list[Row]:
    numbers = [{column: _number(system, column, metrics) for column in COLUMNS} for system in systems]
    best = {column: max(rounded(system.mean(column)) for system in systems) for column in COLUMNS}
    ends = [_ends(system, metrics) for system in systems]
    least, most = min(low for low, _ in ends), max(high for _, high in ends)
    width = (most - least) or 1.0
    rows = []
    for system, shown, (low, high) in zip(systems, numbers, ends, strict=True):
        o = system.origin
        span = Span(*(100 * (value - least) / width for value in (system.mean("rsum"), low, high)))
        winners = frozenset(column for column in COLUMNS if rounded(system.mean(column)) == best[column])
        rows.append(Row(names.method(o.recipe, o.visual), names.encoder(o.text), names.features(o.visual),
                        len(system.systems), system.systems, shown, stand_ins(system), winners, span))
    return rows


def _number(system: Measured, column: str, metrics: Mapping[str, Any]) -> Number:
    text, spread = str(rounded(system.mean(column))), system.spread(column)
    if spread is not None:
        return Number(text, spread=str(rounded(spread)))
    interval = _interval(system, column, metrics)
    return Number(text, *(str(rounded(end)) for end in interval)) if interval else Number(text)


def _ends(system: Measured, metrics: Mapping[str, Any]) -> tuple[float, float]:
    """RSUM's interval; over several seeds the lowest and highest."""
    interval = _interval(system, "rsum", metrics)
    return interval if interval and len(system.systems) == 1 else (min(system.values["rsum"]),
                                                                     max(system.values["rsum"]))


def _interval(system: Measured, column: str, metrics: Mapping[str, Any]) -> tuple[float, float] | None:
    """The interval that `pipeline evaluate` wrote for one run; None where it wrote none."""
    interval = metrics[system.systems[0]][system.origin.protocol].get("interval")
    if not interval:
        return None
    low, high = interval["rsum"] if column == "rsum" else interval[column[:3]][column[4:]]
    return float(low), float(high)

"""What `pipeline evaluate` prints: results as text."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from statistics import fmean, stdev
from typing import Any, NamedTuple, TypeAlias

from pipeline.evaluation.metrics.numbers import STATISTICS, TASKS, Statistic, at, flat, nested
from pipeline.files.left_out import by_reason
from pipeline.parts.errors import counted
from pipeline.parts.wrapping import wrapped
from pipeline.report import text
from pipeline.report.table import MISSING, Cell, Column, Panel, RowGroup, TableRow, grid, number


class Series(NamedTuple):
    """A system of several seeds."""

    name: str
    identity: str  # of what all its seeds have in common


# A name and its metrics (`Metrics.as_dict`, with or without "interval", the split, the `Series` and
# its seed), once for each protocol.
Results: TypeAlias = Sequence[tuple[str, Mapping[str, Any]]]

DIRECTIONS = {way: TASKS[way] for way in ("i2t", "t2i")}
RECALLS, RANKS = ("R@1", "R@5", "R@10"), ("MedR", "MeanR", "tied queries")
MORE = "-v: those of the recalls, and ranks."
SPREAD = "±: standard deviation over seeds of a system, whose means are shown."
NOTE = "In brackets: 95 % intervals, for other images with their captions."


def to_text(results: Results, strong: text.Strong = str) -> str:
    """Write small text tables for each result, of recalls and of ranks, at most 80 columns wide.

    strong: writes the RSUM.
    """
    parts = []
    for name, numbers in results:
        rows = [(DIRECTIONS[way], cells_of(numbers, way)) for way in directions(numbers)]
        parts += [
            wrapped(title(name, numbers)),
            *text.to_text(
                grid(("", *RECALLS), {"": [(title, *cells[:3]) for title, cells in rows]})
            ),
        ]
        if any(
            numbers[way]["MedR"] is not None for way in DIRECTIONS
        ):  # lists do not tell the ranks beyond them
            parts += text.to_text(
                grid(("", *RANKS), {"": [(title, *cells[3:]) for title, cells in rows]})
            )
        if numbers["RSUM"] is not None:
            rsum = _rsum(numbers)
            parts.append(f"  RSUM {strong(rsum.text)}{rsum.after}")
        parts += [*(wrapped(line, "  ") for line in remarks(numbers)), ""]
    parts += [line for each in told_over_seeds(results) for line in (wrapped(each), "")]
    return "\n".join([*parts, *([NOTE] if _with_intervals(results) else [])]).rstrip()


def to_table(results: Results, strong: text.Strong = str, width: int | None = None) -> str:
    """Write one text table for each split, pool and protocol: a row for each system, the largest
    RSUM first.

    strong: writes the best number of a column. width: the terminal's, None for any.
    """
    pools: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
    for name, numbers in results:
        pools[title("", numbers)].append((name, numbers))
    parts, has_spread = [], False
    for pool, every in pools.items():
        shown = sorted(over_seeds(every), key=lambda each: each[1]["RSUM"] or 0, reverse=True)
        parts += [
            wrapped(pool[:1].upper() + pool[1:]),
            *text.to_text(_panel(shown), strong, width),
            *(wrapped(line, "  ") for line in _noted(every)),
            "",
        ]
        has_spread = has_spread or any("spread" in numbers for _, numbers in shown)
    parts += [wrapped(f"{SPREAD} Each alone: -v."), ""] if has_spread else []
    return "\n".join(
        [*parts, *(map(wrapped, [f"{NOTE} {MORE}"]) if _with_intervals(results) else [])]
    ).rstrip()


def _panel(results: Results) -> Panel:
    """A row for each system; the best recalls and RSUM are bold."""
    columns = [
        Column("system", kind="text"),
        *(Column(name, (task,)) for task in DIRECTIONS.values() for name in RECALLS),
        Column("RSUM"),
    ]
    rows = [
        [
            *(
                _cell(numbers[way][name], None, numbers.get("spread", {}).get(way, {}).get(name))
                for way in DIRECTIONS
                for name in RECALLS
            ),
            _rsum(numbers),
        ]
        for _, numbers in results
    ]
    best = [
        max((cell.number for cell in column if cell.number is not None), default=None)
        for column in zip(*rows, strict=True)
    ]
    return Panel(
        tuple(columns),
        (
            RowGroup(
                tuple(
                    TableRow(
                        (
                            Cell(name),
                            *(
                                replace(
                                    cell, bold="black" if cell.number == most is not None else None
                                )
                                for cell, most in zip(row, best, strict=True)
                            ),
                        )
                    )
                    for (name, _), row in zip(results, rows, strict=True)
                )
            ),
        ),
    )


def _noted(results: Results) -> Iterator[str]:
    """Say once what all systems of a pool have in common, and what only some have by their
    names.
    """
    names: dict[str, list[str]] = defaultdict(list)
    for name, numbers in results:
        for line in (*_metrics(numbers), *_mean_of_languages(numbers), *_left_out(numbers)):
            names[line].append(name)
    for line, having in names.items():
        yield line if len(having) == len(results) else f"{', '.join(having)}: {line}"
    if any("languages" in numbers for _, numbers in results):
        yield "every language: -v"
    if any("extended" in numbers for _, numbers in results):
        yield "extended judgements: -v"


def directions(numbers: Mapping[str, Any]) -> list[str]:
    """The directions that have queries: lists may rank one alone."""
    return [way for way in DIRECTIONS if numbers[way]["R@1"] is not None]


def title(name: str, numbers: Mapping[str, Any]) -> str:
    """Say what was measured: the name, split, size of the pool, protocol and ties."""
    size = f"{numbers['images']} images x {numbers['captions']} captions, protocol {numbers['protocol']}"
    ties = "" if numbers["ties"] == "expected" else f", ties {numbers['ties']}"
    split = f"{numbers['split']} split" if numbers.get("split") else ""
    return ", ".join(part for part in (name, split, size) if part) + ties


def cells_of(numbers: Mapping[str, Any], way: str) -> list[Cell]:
    """The cells of one direction: three recalls, ranks and tied queries."""
    interval = numbers.get("interval", {}).get(way) or {}
    recalls = [number(numbers[way][name], interval.get(name)) for name in RECALLS]
    ranks = [_cell(numbers[way][name]) for name in ("MedR", "MeanR")]
    return [*recalls, *ranks, Cell(Decimal(numbers["tied"][way]))]


def _rsum(numbers: Mapping[str, Any]) -> Cell:
    return _cell(
        numbers["RSUM"],
        numbers.get("interval", {}).get("RSUM"),
        numbers.get("spread", {}).get("RSUM"),
    )


def _cell(
    value: float | None, interval: Sequence[float] | None = None, spread: float | None = None
) -> Cell:
    return Cell(MISSING) if value is None else number(value, interval, spread)


def remarks(numbers: Mapping[str, Any]) -> Iterator[str]:
    """Say what the recalls do not: further metrics, languages, what was left out."""
    yield from _metrics(numbers)
    for judged, metrics in numbers.get("extended", {}).items():
        yield from (f"{judged} {line}" for line in _metrics(metrics, shown=()))
    yield from _languages(numbers)
    yield from _left_out(numbers)


def _left_out(numbers: Mapping[str, Any]) -> Iterator[str]:
    if lacks := numbers.get("left_out"):
        yield f"left out of the data set or this pool: {by_reason(lacks)}"
    for what in ("captions_without_image", "images_without_caption"):
        if alone := numbers.get(what):
            yield f"{what.replace('_', ' ')}: {alone}; they are candidates, never queries"
    if lacks := numbers.get("relevance", {}).get("left_out"):
        yield f"left out of the judgements: {by_reason(lacks)}"


def _languages(numbers: Mapping[str, Any]) -> Iterator[str]:
    """Write a line for each language, with mR and the recalls of both directions, and one for the
    mean of mR.
    """
    for language, entry in numbers.get("languages", {}).items():
        ways = "; ".join(
            f"{title} " + ", ".join(map(str, cells_of(entry, way)[:3]))
            for way, title in DIRECTIONS.items()
        )
        mean = number(entry["mR"], entry.get("interval", {}).get("mR"))
        yield f"{language}, {counted(entry['captions'], 'caption')}: mR {mean}; R@1, R@5, R@10 {ways}"
    yield from _mean_of_languages(numbers)


def _mean_of_languages(numbers: Mapping[str, Any]) -> Iterator[str]:
    if mean_of := numbers.get("mean_of_languages"):
        yield f"mean of languages: mR {number(mean_of['mR'], mean_of.get('interval', {}).get('mR'))}"


def _metrics(
    numbers: Mapping[str, Any], shown: Sequence[str] = (*RECALLS, "RSUM")
) -> Iterator[str]:
    """Write a line on judged queries, one on relevance from elsewhere, and one a metric not in
    tables.
    """
    queries = numbers.get("queries", {})
    if 0 in queries.values() or "digest" in numbers.get("relevance", {}):
        yield "judged queries: " + ", ".join(
            f"{TASKS[way]} {count}" for way, count in queries.items()
        )
    if judged := numbers.get("relevance"):
        pairs = judged["pairs"]
        yield (
            f"relevance: {judged['source']}, "
            + (
                counted(pairs["i2t"], "pair")
                if pairs["i2t"] == pairs["t2i"]
                else f"{counted(pairs['i2t'], 'pair')} of image queries, {pairs['t2i']} of caption queries"
            )
        )
    metrics: dict[str, list[str]] = defaultdict(list)
    for (way, name), interval in flat(numbers.get("interval", {})).items():
        if name not in shown:
            value = str(number(at(numbers, Statistic(way, name)), interval))
            metrics[name].append(f"{TASKS[way]} {value}" if way else value)
    yield from (f"{name}: {', '.join(values)}" for name, values in metrics.items())


def over_seeds(results: Results) -> list[tuple[str, Mapping[str, Any]]]:
    """The results, with one instead of those of a system's seeds: means of recalls and RSUM, with
    their `spread`.
    """
    groups: dict[object, dict[int | None, tuple[str, Mapping[str, Any]]]] = defaultdict(dict)
    for place, (name, numbers) in enumerate(results):
        series, seed = numbers.get("series"), numbers.get("seed")
        is_copy = series and seed in groups[series]  # and has a row of its own
        groups[place if is_copy or not series else series][seed] = name, numbers
    return [
        next(iter(every.values()))
        if len(every) == 1
        else _mean([numbers for _, numbers in every.values()])
        for every in groups.values()
    ]


def _mean(every: Sequence[Mapping[str, Any]]) -> tuple[str, Mapping[str, Any]]:
    values = {name: [at(numbers, name) for numbers in every] for name in STATISTICS}
    known = {name: each for name, each in values.items() if None not in each}
    means = nested({name: fmean(known[name]) if name in known else None for name in STATISTICS})
    first = {key: value for key, value in every[0].items() if key != "interval"}
    return every[0]["series"].name, first | means | {
        "spread": nested({name: stdev(known[name]) for name in known})
    }


def told_over_seeds(results: Results) -> Iterator[str]:
    """Write a line for each system of several seeds, by what made them: means and deviations over
    seeds.
    """
    systems: dict[tuple[Series, str], dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for _, numbers in results:
        if numbers.get("series"):
            systems[numbers["series"], numbers["protocol"]].setdefault(numbers["seed"], numbers)
    for (series, protocol), of_seeds in systems.items():
        if len(runs := list(of_seeds.values())) > 1:
            text = "; ".join(
                f"{title} "
                + ", ".join(str(_spread([run[way][name] for run in runs])) for name in RECALLS)
                for way, title in DIRECTIONS.items()
            )
            yield (
                f"{series.name}, protocol {protocol}, mean ± standard deviation of {len(runs)} seeds: {text}; "
                f"RSUM {_spread([run['RSUM'] for run in runs])}"
            )


def _spread(values: list[float]) -> Cell:
    return number(fmean(values), spread=stdev(values))


def _with_intervals(results: Results) -> bool:
    return any("interval" in numbers for _, numbers in results)

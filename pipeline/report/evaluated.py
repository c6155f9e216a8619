"""What `pipeline evaluate` prints: results as text."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from statistics import fmean, stdev
from typing import Any, NamedTuple, TypeAlias

from pipeline.evaluation.metrics.numbers import TASKS, Statistic, at, flat
from pipeline.files.left_out import by_reason
from pipeline.parts.wrapping import wrapped
from pipeline.report import text
from pipeline.report.table import MISSING, Cell, grid, number


class Series(NamedTuple):
    """A system of several seeds."""

    name: str
    identity: str  # of what all its seeds have in common


# A name and its metrics (`Metrics.as_dict`, with or without "interval", the split, the `Series` and its seed), once for
# each protocol.
Results: TypeAlias = Sequence[tuple[str, Mapping[str, Any]]]

DIRECTIONS = {way: TASKS[way] for way in ("i2t", "t2i")}
RECALLS, RANKS = ("R@1", "R@5", "R@10"), ("MedR", "MeanR", "tied queries")
NOTE = "In brackets: 95 % intervals, for other images with their captions."


def to_text(results: Results) -> str:
    """Write small text tables for each result, of recalls and of ranks, at most 80 columns wide."""
    parts = []
    for name, numbers in results:
        rows = [(DIRECTIONS[way], cells_of(numbers, way)) for way in directions(numbers)]
        parts += [wrapped(title(name, numbers)),
                  *text.to_text(grid(("", *RECALLS), {"": [(title, *cells[:3]) for title, cells in rows]}))]
        if any(numbers[way]["MedR"] is not None for way in DIRECTIONS):  # lists do not tell the ranks beyond them
            parts += text.to_text(grid(("", *RANKS), {"": [(title, *cells[3:]) for title, cells in rows]}))
        parts += [f"  RSUM {_rsum(numbers)}"] if numbers["RSUM"] is not None else []
        parts += [*(wrapped(line, "  ") for line in remarks(numbers)), ""]
    parts += [line for each in over_seeds(results) for line in (wrapped(each), "")]
    return "\n".join([*parts, *([NOTE] if _with_intervals(results) else [])]).rstrip()


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
    ranks = [Cell(MISSING) if numbers[way][name] is None else number(numbers[way][name]) for name in ("MedR", "MeanR")]
    return [*recalls, *ranks, Cell(Decimal(numbers["tied"][way]))]


def _rsum(numbers: Mapping[str, Any]) -> Cell:
    if numbers["RSUM"] is None:
        return Cell(MISSING)
    return number(numbers["RSUM"], numbers.get("interval", {}).get("RSUM"))


def remarks(numbers: Mapping[str, Any]) -> Iterator[str]:
    """Say what the recalls do not: further metrics, languages, what was left out."""
    yield from _metrics(numbers)
    for judged, metrics in numbers.get("extended", {}).items():
        yield from (f"{judged} {line}" for line in _metrics(metrics, shown=()))
    yield from _languages(numbers)
    if lacks := numbers.get("left_out"):
        yield f"left out of the data set or this pool: {by_reason(lacks)}"
    for what in ("captions_without_image", "images_without_caption"):
        if alone := numbers.get(what):
            yield f"{what.replace('_', ' ')}: {alone}; they are candidates, never queries"
    if lacks := numbers.get("relevance", {}).get("left_out"):
        yield f"left out of the judgements: {by_reason(lacks)}"


def _languages(numbers: Mapping[str, Any]) -> Iterator[str]:
    """Write a line for each language, with mR and the recalls of both directions, and one for the mean of mR."""
    for language, entry in numbers.get("languages", {}).items():
        ways = "; ".join(f"{title} " + ", ".join(map(str, cells_of(entry, way)[:3]))
                         for way, title in DIRECTIONS.items())
        mean = number(entry["mR"], entry.get("interval", {}).get("mR"))
        yield f"{language}, {entry['captions']} captions: mR {mean}; R@1, R@5, R@10 {ways}"
    if mean_of := numbers.get("mean_of_languages"):
        yield f"mean of languages: mR {number(mean_of['mR'], mean_of.get('interval', {}).get('mR'))}"


def _metrics(numbers: Mapping[str, Any], shown: Sequence[str] = (*RECALLS, "RSUM")) -> Iterator[str]:
    """Write a line on judged queries, one on relevance from elsewhere, and one a metric not in tables."""
    queries = numbers.get("queries", {})
    if 0 in queries.values() or "digest" in numbers.get("relevance", {}):
        yield "judged queries: " + ", ".join(f"{TASKS[way]} {count}" for way, count in queries.items())
    if judged := numbers.get("relevance"):
        pairs = judged["pairs"]
        yield (f"relevance: {judged['source']}, " + (f"{pairs['i2t']} pairs" if pairs["i2t"] == pairs["t2i"] else
               f"{pairs['i2t']} pairs of image queries, {pairs['t2i']} of caption queries"))
    metrics: dict[str, list[str]] = defaultdict(list)
    for (way, name), interval in flat(numbers.get("interval", {})).items():
        if name not in shown:
            value = str(number(at(numbers, Statistic(way, name)), interval))
            metrics[name].append(f"{TASKS[way]} {value}" if way else value)
    yield from (f"{name}: {', '.join(values)}" for name, values in metrics.items())


def over_seeds(results: Results) -> Iterator[str]:
    """Write a line for each system of several seeds, by what made them: means and deviations over seeds."""
    systems: dict[tuple[Series, str], dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for _, numbers in results:
        if numbers.get("series"):
            systems[numbers["series"], numbers["protocol"]].setdefault(numbers["seed"], numbers)
    for (series, protocol), of_seeds in systems.items():
        if len(runs := list(of_seeds.values())) > 1:
            text = "; ".join(f"{title} " + ", ".join(str(_spread([run[way][name] for run in runs])) for name in RECALLS)
                             for way, title in DIRECTIONS.items())
            yield (f"{series.name}, protocol {protocol}, mean ± standard deviation of {len(runs)} seeds: {text}; "
                   f"RSUM {_spread([run['RSUM'] for run in runs])}")


def _spread(values: list[float]) -> Cell:
    return number(fmean(values), spread=stdev(values))


def _with_intervals(results: Results) -> bool:
    return any("interval" in numbers for _, numbers in results)

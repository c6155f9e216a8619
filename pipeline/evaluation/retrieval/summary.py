"""Metrics as text or as a Markdown table, from the plain values of `Metrics.as_dict`."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple, TypeAlias

from pipeline.evaluation.metrics.numbers import TASKS, Statistic, at, flat
from pipeline.files.left_out import by_reason
from pipeline.parts.wrapping import TERMINAL, wrapped


class Series(NamedTuple):
    """A system of several seeds."""

    name: str
    identity: str  # of what all its seeds have in common


# A name and its metrics (`Metrics.as_dict`, with or without "interval", the split, the `Series` and its seed), once for
# each protocol.
Results: TypeAlias = Sequence[tuple[str, Mapping[str, Any]]]

DIRECTIONS = {way: TASKS[way] for way in ("i2t", "t2i")}
RECALLS, RANKS = ("R@1", "R@5", "R@10"), ("MedR", "MeanR", "tied queries")
COLUMNS = RECALLS + RANKS
NOTE = "In brackets: 95 % intervals, for other images with their captions."


def to_text(results: Results) -> str:
    """Write small text tables for each result, of recalls and of ranks, at most 80 columns wide."""
    parts = []
    for name, numbers in results:
        rows = [[title, *_row(numbers, way)] for way, title in DIRECTIONS.items() if way in numbers]
        tables = [*aligned([["", *RECALLS], *(row[:4] for row in rows)])]
        if "tied" in numbers:  # not of a run file, which does not tell the ranks beyond its lists
            tables += aligned([["", *RANKS], *([row[0], *row[4:]] for row in rows)])
        rsum = [f"  RSUM {_rsum(numbers)}"] if "RSUM" in numbers else []
        parts += [wrapped(_title(name, numbers)), *tables, *rsum,
                  *(wrapped(line, "  ") for line in _remarks(numbers)), ""]
    parts += [line for each in _seeds(results) for line in (wrapped(each), "")]
    return "\n".join([*parts, *([NOTE] if _with_intervals(results) else [])]).rstrip()


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Write a table's rows as indented lines with aligned columns, which are closer in one that is wide."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    gap = "  " if sum(widths) + 2 * len(widths) <= TERMINAL else " "
    rows = (gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return [f"  {row}".rstrip() for row in rows]


def to_markdown(results: Results) -> str:
    """Write all results as one Markdown table, two rows for each."""
    lines = ["| | direction | " + " | ".join(COLUMNS) + " | RSUM |", "|:--|:--|" + "--:|" * (len(COLUMNS) + 1)]
    for name, numbers in results:
        first = True
        for way, title in DIRECTIONS.items():
            if way not in numbers:
                continue
            row = [_escape(_title(name, numbers)) if first else "", title, *_row(numbers, way),
                   _rsum(numbers) if first else ""]
            lines.append("| " + " | ".join(row) + " |")
            first = False
    remarks = [": ".join(filter(None, (_escape(name), line))) for name, numbers in results
               for line in _remarks(numbers)]
    remarks += [_escape(each) for each in _seeds(results)]
    return "\n\n".join(["\n".join(lines), *remarks, *([NOTE] if _with_intervals(results) else [])])


def _title(name: str, numbers: Mapping[str, Any]) -> str:
    size = f"{numbers['images']} images x {numbers['captions']} captions, protocol {numbers['protocol']}"
    ties = "" if numbers["ties"] == "expected" else f", ties {numbers['ties']}"
    split = f"{numbers['split']} split" if numbers.get("split") else ""
    return ", ".join(part for part in (name, split, size) if part) + ties


def _row(numbers: Mapping[str, Any], way: str) -> list[str]:
    interval = numbers.get("interval", {}).get(way, {})
    return [*(ranged(numbers[way][k], interval.get(k)) for k in RECALLS),
            *([f"{numbers[way]['MedR']:.1f}", f"{numbers[way]['MeanR']:.1f}", str(numbers["tied"][way])]
              if "tied" in numbers else "–––")]


def _rsum(numbers: Mapping[str, Any]) -> str:
    return "–" if "RSUM" not in numbers else ranged(numbers["RSUM"], numbers.get("interval", {}).get("RSUM"))


def ranged(value: float, interval: Iterable[float] | None) -> str:
    """Write a number with its interval."""
    return f"{value:.1f}" + (" [{:.1f}, {:.1f}]".format(*interval) if interval else "")


def _remarks(numbers: Mapping[str, Any]) -> Iterator[str]:
    yield from _metrics(numbers)
    for judged, metrics in numbers.get("extended", {}).items():
        yield from (f"{judged} {line}" for line in _metrics(metrics, shown=()))
    yield from _languages(numbers)
    if lacks := numbers.get("left_out"):
        yield f"left out of the data set or this pool: {by_reason(lacks)}"
    if alone := numbers.get("captions_without_image"):
        yield f"captions that belong to no image: {alone}, which are candidates and no queries"
    if lacks := numbers.get("relevance", {}).get("left_out"):
        yield f"left out of the judgements: {by_reason(lacks)}"


def _languages(numbers: Mapping[str, Any]) -> Iterator[str]:
    """Write a line for each language, with mR and the recalls of both directions, and one for the mean of mR."""
    for language, found in numbers.get("languages", {}).items():
        ways = "; ".join(f"{title} " + ", ".join(_row(found, way)[:3]) for way, title in DIRECTIONS.items())
        mean = ranged(found["mR"], found.get("interval", {}).get("mR"))
        yield f"{language}, {found['captions']} captions: mR {mean}; R@1, R@5, R@10 {ways}"
    if mean_of := numbers.get("mean_of_languages"):
        yield f"mean of languages: mR {ranged(mean_of['mR'], mean_of.get('interval', {}).get('mR'))}"


def _metrics(numbers: Mapping[str, Any], shown: Sequence[str] = (*RECALLS, "RSUM")) -> Iterator[str]:
    """Write a line on a run file's judged queries, one on relevance from elsewhere, and one a metric not in tables."""
    if "run" in numbers:
        yield "judged queries: " + ", ".join(f"{TASKS[way]} {count}" for way, count in numbers["queries"].items())
    if judged := numbers.get("relevance"):
        pairs = judged["pairs"]
        yield (f"relevance: {judged['source']}, " + (f"{pairs['i2t']} pairs" if pairs["i2t"] == pairs["t2i"] else
               f"{pairs['i2t']} pairs of image queries, {pairs['t2i']} of caption queries"))
    metrics: dict[str, list[str]] = defaultdict(list)
    for (way, name), interval in flat(numbers.get("interval", {})).items():
        if name not in shown:
            value = ranged(at(numbers, Statistic(way, name)), interval)
            metrics[name].append(f"{TASKS[way]} {value}" if way else value)
    yield from (f"{name}: {', '.join(values)}" for name, values in metrics.items())


def _seeds(results: Results) -> Iterator[str]:
    """Write a line for each system of several seeds, by what made them: means and deviations over seeds."""
    systems: dict[tuple[Series, str], dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for _, numbers in results:
        if numbers.get("series"):
            systems[numbers["series"], numbers["protocol"]].setdefault(numbers["seed"], numbers)
    for (series, protocol), of_seeds in systems.items():
        if len(runs := list(of_seeds.values())) > 1:
            told = "; ".join(f"{title} " + ", ".join(_spread(run[way][k] for run in runs) for k in RECALLS)
                             for way, title in DIRECTIONS.items())
            yield (f"{series.name}, protocol {protocol}, mean ± standard deviation of {len(runs)} seeds: {told}; "
                   f"RSUM {_spread(run['RSUM'] for run in runs)}")


def _spread(values: Iterable[float]) -> str:
    every = list(values)
    return f"{fmean(every):.1f} ± {stdev(every):.1f}"


def _with_intervals(results: Results) -> bool:
    return any("interval" in numbers for _, numbers in results)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")

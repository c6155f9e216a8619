"""What `pipeline evaluate` prints: results as text."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from statistics import fmean, stdev
from typing import Any, NamedTuple, TypeAlias

from pipeline.foundation.evaluation.metrics.base import (
    RSUM,
    STATISTICS,
    TASKS,
    Statistic,
    at,
    flat,
    nested,
)
from pipeline.foundation.evaluation.statistics import ImageHits
from pipeline.foundation.evaluation.statistics.intervals import of_mean
from pipeline.foundation.files.left_out import by_reason
from pipeline.foundation.parts.errors import counted, sized
from pipeline.foundation.parts.wrapping import wrapped
from pipeline.judge.systems.scores.system import IMAGES_AND_CAPTIONS
from pipeline.judge.tables import text
from pipeline.judge.tables.bold import NEVER_BOLD, Contender, Emphasis
from pipeline.judge.tables.table import (
    MISSING,
    Cell,
    Column,
    Note,
    Panel,
    RowGroup,
    TableRow,
    grid,
    number,
)


class Series(NamedTuple):
    """A system of several seeds."""

    name: str
    identity: str  # of what all its seeds have in common


# A name and its metrics (`Metrics.as_dict`, with or without "interval", the split, the `Series` and
# its seed, and the `Contender` that it is for bold), once for each protocol.
Results: TypeAlias = Sequence[tuple[str, Mapping[str, Any]]]

DIRECTIONS = {way: TASKS[way] for way in ("i2t", "t2i")}
RECALLS = ("R@1", "R@5", "R@10")
RANKS = ("MedR", "MeanR", "tied queries")
MORE = "-v: also intervals of the recalls, and ranks."
SPREAD = "±: standard deviation over seeds of a system, whose means are shown."
POOLS = "These pools differ in size: a smaller one is easier, so do not compare their recalls."
NOTE = "In brackets: 95 % intervals, how much a number would vary with another sample of"


def to_text(results: Results) -> str:
    """Write small text tables for each result, of recalls and of ranks, at most 80 columns wide."""
    lines: list[str] = []
    for system, numbers in results:
        recalls: list[list[str | Cell]] = []
        ranks: list[list[str | Cell]] = []
        for way in directions(numbers):
            cells = cells_of(numbers, way)
            recalls.append([task(numbers, way), *cells[:3]])
            ranks.append([task(numbers, way), *cells[3:]])
        lines.append(wrapped(title(system, numbers)))
        lines += text.to_text(grid(("", *RECALLS), {"": recalls}))
        # Lists do not tell the ranks beyond them.
        if any(numbers[way]["MedR"] is not None for way in DIRECTIONS):
            lines += text.to_text(grid(("", *RANKS), {"": ranks}))
        if numbers["RSUM"] is not None:
            lines.append(f"  RSUM {_rsum(numbers)}")
        lines += [wrapped(line, "  ") for line in remarks(numbers)]
        lines.append("")
    for line in told_over_seeds(results):
        lines += [wrapped(line), ""]
    lines += notes_on_pools(results)
    if _with_intervals(results):
        lines.append(wrapped(f"{NOTE} {sampled(results)}."))
    return "\n".join(lines).rstrip()


def to_table(results: Results, strong: text.Strong = str, width: int | None = None) -> str:
    """Write one text table for each split, pool and protocol: a row for each system, the largest
    sum of recalls first.

    strong: writes a bold number; what is bold is not said where it is `str`, which shows nothing.
    width: the terminal's, None for any.
    """
    pools: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
    for system, numbers in results:
        pools[title("", numbers)].append((system, numbers))
    lines: list[str] = []
    has_spread = False
    has_intervals = False
    for pool_title, results_of_pool in pools.items():
        systems = over_seeds(results_of_pool)
        systems.sort(key=lambda result: _sum_of_recalls(result[1]), reverse=True)
        lines.append(wrapped(pool_title[:1].upper() + pool_title[1:]))
        panel = _panel(systems)
        lines += text.to_text(panel, strong, width)
        if strong is not str:
            lines += [wrapped(note.text, "  ") for note in panel.notes]
        lines += [wrapped(line, "  ") for line in _noted(results_of_pool)]
        lines.append("")
        has_spread = has_spread or any(numbers.get("spread") for _, numbers in systems)
        in_remarks = any(_remarks_have_intervals(numbers) for _, numbers in results_of_pool)
        has_intervals = has_intervals or in_remarks or _has_intervals(panel)
    if has_spread:
        lines += [wrapped(f"{SPREAD} Each alone: -v."), ""]
    lines += notes_on_pools(results)
    if has_intervals:
        lines.append(wrapped(f"{NOTE} {sampled(results)}. {MORE}"))
    return "\n".join(lines).rstrip()


def _sum_of_recalls(numbers: Mapping[str, Any]) -> float:
    """The sum of the recalls that there are, by which systems are sorted."""
    return sum(numbers[way][recall] for way in directions(numbers) for recall in RECALLS)


def _has_intervals(panel: Panel) -> bool:
    """Whether a number of a panel is shown with its interval."""
    for group in panel.groups:
        for row in group.rows:
            if any(cell.interval for cell in row.cells):
                return True
    return False


def _remarks_have_intervals(numbers: Mapping[str, Any]) -> bool:
    """Whether a line below the table, on a further metric or on languages, has an interval."""
    metrics = {metric for _, metric in flat(numbers.get("interval", {}))}
    if metrics.difference(RECALLS, ["RSUM"]):
        return True
    mean = numbers.get("mean_of_languages") or {}
    return mean.get("mR") is not None and "interval" in mean


def _panel(results: Results) -> Panel:
    """A row for each system, with notes on what is bold."""
    columns = [Column("system", kind="text")]
    shown_statistics = measured_by(results)
    for statistic in shown_statistics:
        headings: tuple[str, ...] = ()
        if statistic.direction:
            headings = (task(results[0][1], statistic.direction),)
        columns.append(Column(statistic.metric, headings))
    contenders = [contender(numbers) for _, numbers in results]
    cells = []
    for name, numbers in results:
        cells.append([Cell(name), *_numbers(numbers, shown_statistics)])
    emphasis = Emphasis()
    for place, statistic in enumerate(shown_statistics, start=1):
        competing = {}
        tested = {}
        for row, system in enumerate(contenders):
            shown = cells[row][place].number
            if shown is None:
                continue
            tested[row] = system.tested(statistic)
            if system.competes:
                competing[row] = shown
        for row in emphasis.bold(competing, tested):
            cells[row][place] = replace(cells[row][place], bold="black")
    rows = [TableRow(tuple(cells_of_row)) for cells_of_row in cells]
    notes = [of_units(emphasis.said(), results[0][1])]
    if not all(system.competes for system in contenders):
        notes.append(NEVER_BOLD)
    return Panel(
        tuple(columns), (RowGroup(tuple(rows)),), notes=tuple(map(Note, filter(None, notes)))
    )


def contender(numbers: Mapping[str, Any]) -> Contender:
    """What the rule of bold asks of a system; without hits where they are not known."""
    known: Contender = numbers.get("contender", Contender())
    return known


def measured_by(results: Results) -> list[Statistic]:
    """The recalls and RSUM that any of the systems has: runs may rank one direction alone."""
    measured = []
    for statistic in STATISTICS:
        if any(at(numbers, statistic) is not None for _, numbers in results):
            measured.append(statistic)
    return measured


def _numbers(numbers: Mapping[str, Any], shown: Iterable[Statistic]) -> list[Cell]:
    """The cells of a system's recalls and RSUM."""
    cells = []
    for statistic in shown:
        if statistic == RSUM:
            cells.append(_rsum(numbers))
            continue
        spread = None
        if "spread" in numbers:
            spread = at(numbers["spread"], statistic)
        cells.append(_cell(at(numbers, statistic), None, spread))
    return cells


def _noted(results: Results) -> Iterator[str]:
    """Say once what all systems of a pool have in common, and what only some have by their
    names.
    """
    systems: dict[str, list[str]] = defaultdict(list)
    for system, numbers in results:
        remarks_of_system = [
            *_tied(numbers),
            *over_ties(numbers, hidden=RANKS),
            *_metrics(numbers),
            *_mean_of_languages(numbers),
            *of_lists(numbers),
            *_left_out(numbers),
        ]
        for remark in remarks_of_system:
            systems[remark].append(system)
    for remark, names_of_systems in systems.items():
        if len(names_of_systems) == len(results):
            yield remark
        else:
            yield f"{', '.join(names_of_systems)}: {remark}"
    if any("languages" in numbers for _, numbers in results):
        yield "every language: -v"
    if any("extended" in numbers for _, numbers in results):
        yield "extended judgements: -v"


def sampled(results: Results) -> str:
    """What is drawn for the intervals of results, in words."""
    if any(are_images(numbers) for _, numbers in results):
        return "images"
    return "queries"


def task(numbers: Mapping[str, Any], way: str) -> str:
    """A direction in words: "caption → image", or "query → candidate" of a run of anything."""
    of_images, of_captions = sides(numbers)
    if way == "i2t":
        return f"{of_images} → {of_captions}"
    return f"{of_captions} → {of_images}"


def _pool_size(numbers: Mapping[str, Any]) -> str:
    """How many images and captions there are, or candidates and queries."""
    return sized(numbers["images"], numbers["captions"], *sides(numbers))


def sides(numbers: Mapping[str, Any]) -> Sequence[str]:
    """What rows and columns are called."""
    named: Sequence[str] = numbers.get("sides", IMAGES_AND_CAPTIONS)
    return named


def are_images(numbers: Mapping[str, Any]) -> bool:
    """Whether rows are images and columns captions, not candidates and queries of anything."""
    return tuple(sides(numbers)) == IMAGES_AND_CAPTIONS


def of_units(text: str, numbers: Mapping[str, Any]) -> str:
    """A text that calls images what intervals and tests draw: queries of a run of anything."""
    if are_images(numbers):
        return text
    return text.replace("images", "queries").replace("image", "query")


def directions(numbers: Mapping[str, Any]) -> list[str]:
    """The directions that have queries: lists may rank one alone."""
    return [way for way in DIRECTIONS if numbers[way]["R@1"] is not None]


def notes_on_pools(results: Results) -> list[str]:
    """A paragraph that warns of comparing numbers of pools of several sizes; none for one size."""
    sizes = {(numbers["images"], numbers["captions"]) for _, numbers in results}
    if len(sizes) < 2:
        return []
    return [wrapped(POOLS), ""]


def title(name: str, numbers: Mapping[str, Any]) -> str:
    """Say what was measured: the name, split, size of the pool, protocol and ties."""
    title_parts = [name]
    if numbers.get("split"):
        title_parts.append(f"{numbers['split']} split")
    title_parts += [_pool_size(numbers), f"protocol {numbers['protocol']}"]
    if numbers["ties"] != "expected":
        title_parts.append(f"ties {numbers['ties']}")
    return ", ".join(filter(None, title_parts))


def cells_of(numbers: Mapping[str, Any], way: str) -> list[Cell]:
    """The cells of one direction: three recalls, ranks and tied queries."""
    scores = numbers[way]
    interval = numbers.get("interval", {}).get(way) or {}
    recalls = [number(scores[name], interval.get(name)) for name in RECALLS]
    tied = Cell(Decimal(numbers["tied"][way]))
    return [*recalls, _cell(scores["MedR"]), _cell(scores["MeanR"]), tied]


def _rsum(numbers: Mapping[str, Any]) -> Cell:
    interval = numbers.get("interval", {}).get("RSUM")
    spread = numbers.get("spread", {}).get("RSUM")
    return _cell(numbers["RSUM"], interval, spread)


def _cell(
    value: float | None, interval: Sequence[float] | None = None, spread: float | None = None
) -> Cell:
    if value is None:
        return Cell(MISSING)
    return number(value, interval, spread)


def remarks(numbers: Mapping[str, Any]) -> Iterator[str]:
    """Say what the recalls do not: further metrics, languages, what was left out."""
    yield from over_ties(numbers)
    yield from _metrics(numbers)
    for judged, metrics in numbers.get("extended", {}).items():
        for metric_line in _metrics(metrics, shown=()):
            yield f"{judged} {metric_line}"
    yield from _languages(numbers)
    yield from of_lists(numbers)
    yield from _left_out(numbers)


def _tied(numbers: Mapping[str, Any]) -> Iterator[str]:
    """Say how many queries have ties that decide their rank, where there are any."""
    counts = [f"{task(numbers, way)} {numbers['tied'][way]}" for way in directions(numbers)]
    if any(numbers["tied"].values()):
        yield f"tied queries: {', '.join(counts)}"


def over_ties(numbers: Mapping[str, Any], hidden: Sequence[str] = ()) -> Iterator[str]:
    """Say between which values the order of equal scores leaves a number, where it matters. hidden:
    metrics that are not shown.
    """
    parts: dict[str, list[str]] = defaultdict(list)
    for (way, metric), (low, high) in flat(numbers.get("over_ties", {})).items():
        if metric in hidden:
            continue
        heading = task(numbers, way) if way else ""
        parts[heading].append(f"{metric} {number(low)} to {number(high)}")
    if parts:
        shown = [f"{heading} {', '.join(each)}".strip() for heading, each in parts.items()]
        yield f"by the order of ties: {'; '.join(shown)}"


def of_lists(numbers: Mapping[str, Any]) -> Iterator[str]:
    """Say how long lists are, and how many have no right candidate."""
    for way, lists in numbers.get("lists", {}).items():
        queries = numbers["queries"][way]
        missing = lists["without_right"]
        without = "each with a right one"
        if missing:
            share = f"{missing:,} of {queries:,} ({100 * missing / queries:.1f} %)"
            without = f"{share} without a right one, which counts as not found"
        if "candidates_such_as" in lists:
            of_run, of_judgements = lists["candidates_such_as"]
            without += (
                f"; perhaps its candidates, such as {of_run}, are written in another way than those of "
                f"the judgements, such as {of_judgements}"
            )
        yield f"{task(numbers, way)}: lists of up to {counted(lists['longest'], 'candidate')}, {without}"


def _left_out(numbers: Mapping[str, Any]) -> Iterator[str]:
    left_out = numbers.get("left_out")
    if left_out:
        yield f"left out of the data set or this pool: {by_reason(left_out)}"
    for unpaired in ("captions_without_image", "images_without_caption"):
        count = numbers.get(unpaired)
        if count:
            yield f"{unpaired.replace('_', ' ')}: {count}; they are candidates, never queries"
    unjudged = numbers.get("relevance", {}).get("left_out")
    if unjudged:
        yield f"left out of the judgements: {by_reason(unjudged)}"


def _languages(numbers: Mapping[str, Any]) -> Iterator[str]:
    """Write a line for each language, with mR and the recalls of each direction that has queries,
    and one for the mean of mR.
    """
    for language, of_language in numbers.get("languages", {}).items():
        recalls_of_tasks = []
        for way in directions(of_language):
            recalls = cells_of(of_language, way)[:3]
            recalls_of_tasks.append(f"{DIRECTIONS[way]} {', '.join(map(str, recalls))}")
        mean = ""
        if of_language["mR"] is not None:
            mean = f"mR {number(of_language['mR'], of_language.get('interval', {}).get('mR'))}; "
        captions = counted(of_language["captions"], "caption")
        yield f"{language}, {captions}: {mean}R@1, R@5, R@10 {'; '.join(recalls_of_tasks)}"
    yield from _mean_of_languages(numbers)


def _mean_of_languages(numbers: Mapping[str, Any]) -> Iterator[str]:
    mean = numbers.get("mean_of_languages")
    if mean and mean["mR"] is not None:
        interval = mean.get("interval", {})
        yield f"mean of languages: mR {number(mean['mR'], interval.get('mR'))}"


def _metrics(
    numbers: Mapping[str, Any], shown: Sequence[str] = (*RECALLS, "RSUM")
) -> Iterator[str]:
    """Write a line on judged queries, one on relevance from elsewhere, and one a metric not in
    tables.
    """
    queries = numbers.get("queries", {})
    judged = numbers.get("relevance", {})
    if 0 in queries.values() or "digest" in judged:
        counts = [f"{task(numbers, way)} {queries[way]}" for way in directions(numbers)]
        yield f"judged queries: {', '.join(counts)}"
    if judged:
        of_images = judged["pairs"]["i2t"]
        of_captions = judged["pairs"]["t2i"]
        pairs = counted(of_images, "pair")
        if of_images != of_captions:
            pairs += f" of image queries, {of_captions} of caption queries"
        yield f"relevance: {judged['source']}, {pairs}"
    numbers_of_metric: dict[str, list[str]] = defaultdict(list)
    for (way, metric), interval in flat(numbers.get("interval", {})).items():
        if metric not in shown:
            measured = at(numbers, Statistic(way, metric))
            with_interval = str(number(measured, interval))
            if way:
                with_interval = f"{task(numbers, way)} {with_interval}"
            numbers_of_metric[metric].append(with_interval)
    for metric, measured_numbers in numbers_of_metric.items():
        yield f"{metric}: {', '.join(measured_numbers)}"


def over_seeds(results: Results) -> list[tuple[str, Mapping[str, Any]]]:
    """The results, with one instead of those of a system's seeds: means of recalls and RSUM, with
    their `spread`.
    """
    runs_of_system: dict[object, dict[int | None, tuple[str, Mapping[str, Any]]]] = defaultdict(
        dict
    )
    for row, (system, numbers) in enumerate(results):
        series = numbers.get("series")
        seed = numbers.get("seed")
        # A system without a series has a row of its own, and so has a copy of a seed.
        system_key: object = row
        if series and seed not in runs_of_system[series]:
            system_key = series
        runs_of_system[system_key][seed] = (system, numbers)
    means = []
    for by_seed in runs_of_system.values():
        runs = list(by_seed.values())
        if len(runs) == 1:
            means.append(runs[0])
        else:
            means.append(_mean([numbers for _, numbers in runs]))
    return means


def _mean(runs: Sequence[Mapping[str, Any]]) -> tuple[str, Mapping[str, Any]]:
    means: dict[Statistic, float | None] = {}
    deviations = {}
    for statistic in STATISTICS:
        numbers_of_seeds = [at(numbers, statistic) for numbers in runs]
        means[statistic] = None
        if None not in numbers_of_seeds:
            means[statistic] = fmean(numbers_of_seeds)
            deviations[statistic] = stdev(numbers_of_seeds)
    first_seed = {key: value for key, value in runs[0].items() if key != "interval"}
    first_seed["contender"] = replace(contender(first_seed), runs=_hits(runs))
    numbers = first_seed | nested(means) | {"spread": nested(deviations)}
    return runs[0]["series"].name, numbers


def _hits(runs: Sequence[Mapping[str, Any]]) -> tuple[ImageHits, ...]:
    """The hits of each image of a system's seeds; () where those of one are not known."""
    hits: tuple[ImageHits, ...] = ()
    for of_seed in runs:
        of_one = contender(of_seed).runs
        if not of_one:
            return ()
        hits += of_one
    return hits


def told_over_seeds(results: Results) -> Iterator[str]:
    """Write a line for each system of several seeds, by what made them: means and deviations over
    seeds, of the directions that all of them have.
    """
    systems: dict[tuple[Series, str], dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for _, numbers in results:
        if numbers.get("series"):
            by_seed = systems[numbers["series"], numbers["protocol"]]
            by_seed.setdefault(numbers["seed"], numbers)
    for (series, protocol), by_seed in systems.items():
        runs = list(by_seed.values())
        if len(runs) < 2:
            continue
        means = "; ".join(_means_over_seeds(runs))
        if means:
            how = f"protocol {protocol}, mean ± standard deviation of {len(runs)} seeds"
            yield f"{series.name}, {how}: {means}"


def _means_over_seeds(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The recalls of each direction, then RSUM, with their intervals over images where the hits of
    each image are known; what some seed does not have is left out.
    """
    _, numbers = _mean(runs)
    hits = _hits(runs)
    intervals = {}
    if hits:
        intervals = of_mean(hits)

    def mean(statistic: Statistic) -> str:
        value = at(numbers, statistic)
        with_spread = str(number(value, spread=at(numbers["spread"], statistic)))
        interval = intervals.get(statistic)
        if interval is None:
            return with_spread
        return with_spread + number(value, (interval.low, interval.high)).after

    for way in directions(numbers):
        recalls = [mean(Statistic(way, recall)) for recall in RECALLS]
        yield f"{DIRECTIONS[way]} {', '.join(recalls)}"
    if numbers["RSUM"] is not None:
        yield f"RSUM {mean(Statistic('', 'RSUM'))}"


def _with_intervals(results: Results) -> bool:
    return any("interval" in numbers for _, numbers in results)

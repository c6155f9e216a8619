"""The page of a board: one HTML file that loads nothing, of what `pipeline board --json` writes."""

import base64
import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup

from pipeline.foundation.evaluation.statistics import LEVEL
from pipeline.foundation.parts.wrapping import cell as harmless, printable
from pipeline.judge.tables import html
from pipeline.judge.tables.table import MISSING, number
from pipeline.run.report.page.render import known, policy

# Systems whose names fit beside the bars of a task.
MOST_NAMED = 16
# Systems whose bars fit with gaps between them, and half a gap as a part of a row.
MOST_APART = 60
GAP = 0.12
# Moves that are said for a unit that is left out, and tasks that a system is not measured on.
MOST_SAID = 6
# Different chances of one task that its codes of 16 bits are made for without rounding.
MOST_EXACT = 4096
# Less than any that random swaps give; what is below it has its code.
LEAST_CHANCE = 1e-7
# A rule -> the number by which systems are placed, and its decimals.
RULES = {"mean rank": ("mean_rank", 2), "Borda": ("borda", 1), "wins": ("wins", 1)}


def to_html(board: Mapping[str, Any]) -> str:
    """Write the page of a board.

    Args:
        board: As `pipeline board --json` writes it.

    Returns:
        HTML that holds its style, script and data; a Content-Security-Policy forbids everything
        else. No text from the board can run or load anything.
    """
    names = [printable(system["name"]) for system in board["systems"]]
    over_tasks = board["over_tasks"]
    unit = "task"
    if over_tasks and over_tasks["units"] != len(board["tasks"]):
        unit = "unit"
    style = _file("page.css", "pipeline.run.report.page") + _file("page.css", __package__)
    script = _file("page.js", __package__)
    tasks = []
    codes = []
    for task in board["tasks"]:
        chances, codes_of_task = _coded(task)
        tasks.append(_content(task, chances))
        codes.append(codes_of_task)
    return html.page(
        "extensions/board/page.html",
        known,
        names=names,
        board=board,
        facts=_facts(board),
        rows=_rows(board),
        unplaced=_unplaced(board),
        unit=unit,
        finding=_finding(board, unit),
        plots=[_plot(task) for task in board["tasks"]],
        translations=Counter(task["unit"] for task in board["tasks"]),
        stability=_stability(over_tasks),
        moves=_moves(board),
        fact=_fact,
        number=number,
        share=_share,
        most_named=MOST_NAMED,
        most_said=MOST_SAID,
        missing=MISSING,
        level=LEVEL,
        table="data:text/csv;charset=utf-8;base64," + _base64(_to_csv(board).encode()),
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
        data=_packed(_json({"level": LEVEL, "names": names, "tasks": tasks})),
        codes=_packed(b"".join(codes)),
    )


def _file(name: str, package: str) -> str:
    return (files(package) / name).read_text(encoding="utf-8")


def _json(data: Any) -> bytes:
    return json.dumps(known(data), ensure_ascii=False, separators=(",", ":")).encode()


def _packed(data: bytes) -> Markup:
    """As gzip in base64, which no text of it can end."""
    return Markup(_base64(gzip.compress(data, 6, mtime=0)))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


# --- what page.js reads ---------------------------------------------------------------------------


def _content(task: Mapping[str, Any], chances: Sequence[float]) -> dict[str, Any]:
    """A task as page.js reads it: its systems best first, its pairs by their codes."""
    systems = task["systems"]
    intervals = [entry["interval"] or [None, None] for entry in systems]
    return {
        "name": printable(task["name"]),
        "metric": printable(task["metric"]),
        "less": task["less_is_better"],
        "resolution": task["resolution"],
        "systems": [entry["system"] for entry in systems],
        "order": _order(task),
        "values": [entry["value"] for entry in systems],
        "low": [low for low, _ in intervals],
        "high": [high for _, high in intervals],
        "best": [entry["rank"][0] for entry in systems],
        "worst": [entry["rank"][1] for entry in systems],
        "letters": [entry["letters"] for entry in systems],
        "chances": chances,
        "differences": _differences(task),
    }


def _differences(task: Mapping[str, Any]) -> list[float] | None:
    """The pairs' differences; None where they follow from the values."""
    values = np.array([entry["value"] for entry in task["systems"]], float)
    first, second = np.triu_indices(len(values), 1)
    differences = np.array(task["pairs"]["difference"], float)
    rounding = 1e-9 * np.abs(values).max(initial=1)
    if np.allclose(differences, values[second] - values[first], rtol=0, atol=rounding):
        return None
    return [float(f"{difference:.6g}") for difference in differences]


def _coded(task: Mapping[str, Any]) -> tuple[list[float], bytes]:
    """The different chances of a task, and the place among them of each pair's p, then of each
    pair's adjusted p, in 16 bits.
    """
    pairs = task["pairs"]
    chances = np.concatenate([np.array(pairs["p"], float), np.array(pairs["adjusted"], float)])
    different, places = np.unique(chances, return_inverse=True)
    if len(different) > MOST_EXACT:
        different, places = np.unique(_rounded_down(chances), return_inverse=True)
    return different.tolist(), places.astype("<u2").tobytes()


def _rounded_down(chances: np.ndarray) -> np.ndarray:
    """With four digits: no more than 65,536 different ones, each on its side of `LEVEL`."""
    chances = np.maximum(chances, LEAST_CHANCE)
    unit = 10.0 ** (np.floor(np.log10(chances)) - 3)
    rounded = np.floor(chances / unit) * unit
    return np.where(chances >= LEVEL, np.maximum(rounded, LEVEL), rounded)


# --- the small plots of the tasks -----------------------------------------------------------------


def _order(task: Mapping[str, Any]) -> list[int]:
    """The places of a task's systems in its list, best value first."""
    sign = -1
    if task["less_is_better"]:
        sign = 1
    systems = task["systems"]
    return sorted(range(len(systems)), key=lambda place: sign * systems[place]["value"])


def _plot(task: Mapping[str, Any]) -> dict[str, Any]:
    """Paths in a square of ranks, a row for each system, best first; what is said below it."""
    systems = task["systems"]
    height = 1 - 2 * GAP
    if len(systems) > MOST_APART:
        height = 1
    ranges = []
    places = []
    order = _order(task)
    for row, at in enumerate(order):
        best, worst = systems[at]["rank"]
        top = row + (1 - height) / 2
        ranges.append(f"M{best - 1} {top:g}h{worst - best + 1}v{height:g}h{best - worst - 1}z")
        places.append(f"M{row} {top:g}h1v{height:g}h-1z")
    adjusted = np.array(task["pairs"]["adjusted"], float)
    different = int((adjusted < LEVEL).sum())
    return {
        "systems": [systems[at]["system"] for at in order],
        "ranges": "".join(ranges),
        "places": "".join(places),
        "said": f"{different:,} of {len(adjusted):,} pairs differ",
    }


# --- the table over tasks -------------------------------------------------------------------------


def _facts(board: Mapping[str, Any]) -> list[str]:
    """The names of all systems' facts, in the order in which they come."""
    facts: dict[str, None] = {}
    for system in board["systems"]:
        facts |= dict.fromkeys(system["facts"])
    return list(facts)


def _rows(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The placed systems, best first; of one task all its systems."""
    over_tasks = board["over_tasks"]
    if over_tasks:
        below = Counter(above for above, _ in over_tasks["stable"])
        return [{**row, "stays_above": below[row["system"]]} for row in over_tasks["systems"]]
    if len(board["tasks"]) > 1:
        return []
    (task,) = board["tasks"]
    rows = []
    for place, at in enumerate(_order(task), 1):
        row = task["systems"][at]
        rows.append({**row, "place": place, "places": row["rank"]})
    return rows


def _unplaced(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The systems without a place, each with the tasks that it is missing on."""
    if board["over_tasks"]:
        return list(board["over_tasks"]["unplaced"])
    rows: list[dict[str, Any]] = []
    if len(board["tasks"]) == 1:
        return rows
    for place in range(len(board["systems"])):
        missing = []
        for task in board["tasks"]:
            if all(entry["system"] != place for entry in task["systems"]):
                missing.append(task["name"])
        rows.append({"system": place, "missing": missing})
    return rows


def _finding(board: Mapping[str, Any], unit: str) -> str:
    """Who comes first, in a sentence; "" where nobody has a place."""
    rows = _rows(board)
    if not rows:
        return ""
    over_tasks = board["over_tasks"]
    first = [board["systems"][row["system"]]["name"] for row in rows if row["place"] == 1]
    best = rows[0]
    if not over_tasks:
        (task,) = board["tasks"]
        rank = "its rank is 1"
        if best["rank"][1] > 1:
            rank = f"its rank is between {best['rank'][0]} and {best['rank'][1]}"
        return f"{first[0]} has the best {task['metric']}, {number(best['value'])}; {rank}."
    key, digits = RULES[over_tasks["rule"]]
    by = f"by {over_tasks['rule']} ({number(best[key], digits=digits)})"
    if len(first) > 1:
        return f"{len(first)} systems share the first place {by}."
    if over_tasks["units"] == 1:
        return f"{first[0]} comes first {by}."
    if best["places"][1] == 1:
        return f"{first[0]} comes first {by}, whichever {unit} is left out."
    return f"{first[0]} comes first {by}; with one {unit} left out its place may be {best['places'][1]}."


def _stability(over_tasks: Mapping[str, Any] | None) -> dict[str, int]:
    """How many pairs keep their order whichever unit is left out, and which neighbours do."""
    if not over_tasks:
        return {"pairs": 0}
    stable = {tuple(pair) for pair in over_tasks["stable"]}
    order = [row["system"] for row in over_tasks["systems"]]
    count = len(order)
    neighbours = list(pairwise(order))
    return {
        "stable": len(stable),
        "pairs": count * (count - 1) // 2,
        "neighbours": len(neighbours),
        "kept": sum(pair in stable for pair in neighbours),
    }


def _moves(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """For each unit that changes the order: who moves from which place to which, far ones first."""
    if not board["over_tasks"]:
        return []
    before = {row["system"]: row["place"] for row in board["over_tasks"]["systems"]}
    units = []
    for left_out in board["left_out"]:
        moved = []
        for system, place in zip(left_out["order"], left_out["places"], strict=True):
            if place != before[system]:
                moved.append({"system": system, "before": before[system], "after": place})
        moved.sort(key=lambda move: (-abs(move["after"] - move["before"]), move["before"]))
        first = left_out["order"][0]
        units.append({"unit": left_out["unit"], "moved": moved, "first": first})
    return units


def _to_csv(board: Mapping[str, Any]) -> str:
    """The table over tasks; systems without a place come last."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    facts = _facts(board)
    numbers = ["place", "mean_rank", "borda", "wins"]
    if not board["over_tasks"]:
        numbers = ["place", "value"]
    headings = [*numbers, "least place", "last place", "tasks"]
    writer.writerow(["system", *headings, *map(harmless, facts)])
    rows = {row["system"]: row for row in _rows(board)}
    unplaced = [place for place in range(len(board["systems"])) if place not in rows]
    for place in [*rows, *unplaced]:
        system = board["systems"][place]
        row = rows.get(place, {})
        cells = [row.get(number, "") for number in numbers]
        cells += row.get("places", ["", ""])
        of_system = [system["facts"].get(fact, "") for fact in facts]
        writer.writerow([harmless(system["name"]), *cells, system["tasks"], *of_system])
    return written.getvalue()


# --- numbers as text ------------------------------------------------------------------------------


def _fact(value: float | None) -> str:
    """A number of a model, short: 400 M, 1.2 B, 12.5."""
    if value is None:
        return MISSING
    for factor, unit in ((1e9, " B"), (1e6, " M")):
        if abs(value) >= factor:
            return _three_digits(value / factor) + unit
    return _three_digits(value)


def _three_digits(value: float) -> str:
    if abs(value) >= 100:
        return str(number(value, digits=0))
    return f"{value:.3g}".replace("-", "−")


def _share(part: float, whole: float) -> str:
    """In percent of a length, for a drawing."""
    return f"{100 * part / whole:.2f}"

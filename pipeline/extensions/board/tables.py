"""What `pipeline board` prints: places over tasks, and the systems of each task, as text, Markdown,
LaTeX or CSV.

Of up to `FEW` tasks each has a table of its own; more are columns of rank intervals.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.foundation.parts.errors import counted, few, sized
from pipeline.foundation.parts.wrapping import cell as harmless, printable, wrapped
from pipeline.judge.tables import evaluated, latex, markdown, text
from pipeline.judge.tables.table import MISSING, Note, Panel, Table, from_to, grid, number

# A board as plain JSON values.
Board = Mapping[str, Any]
FEW = 4
# The columns of tasks that fit beside each other.
COLUMNS_OF_TEXT = 8
COLUMNS_ON_PAPER = 12
# The rows that fit a page with the lines below them.
ROWS_ON_PAPER = 40
CAPTION = "Rank intervals: the best and the worst possible rank."
# So many systems without a place are named.
NAMED = 10
# A rule -> how it is read.
RULES = {
    "mean rank": "the mean over {units} of a system's rank in each",
    "Borda": "how many other systems are below, summed over {units}, which gives the same order as the mean rank",
    "wins": "how many other systems it beats on more of the {units} than it loses to them on",
}
PLACE = (
    "Place: by {rule}; equal systems share a place. These ranks are by value, among the systems that are measured on "
    "every task. Equal values have the mean of their ranks. Tasks of one unit count as one, by their mean rank. Nothing is "
    "tested over tasks: a place has no p."
)
WITHOUT = "Without one: the best and the worst place when any one unit is left out."
WINS = "Wins: how many other systems it beats on more units than it loses to them on; a draw counts half."
RANKS = (
    "Rank: the best and the worst possible rank among the systems of the task. With 95 % confidence the true ranks of "
    "all of them are within these intervals (random swaps of whole images, p corrected for all pairs of the task by "
    "step-down maxT). Systems that share a letter do not differ significantly. In brackets: 95 % intervals of each "
    "value alone."
)
RANKS_ALONE = (
    "Of each task: the best and the worst possible rank among its systems. With 95 % confidence the true ranks of all "
    "of them are within these intervals (random swaps of whole images, p corrected for all pairs of the task by "
    f"step-down maxT). {MISSING}: not measured. Values and letters: --csv; also pairs: --json."
)


def to_text(board: Board) -> str:
    """Write tables for a terminal."""
    lines: list[str] = []
    notes: list[str] = []
    for panel in _panels(board, COLUMNS_OF_TEXT):
        if panel.caption:
            lines.append(wrapped(panel.caption))
        lines += text.to_text(panel)
        if lines[-1]:
            lines.append("")
        notes += [note.text for note in panel.notes]
    lines += map(wrapped, dict.fromkeys(notes))
    return "\n".join(lines)


def to_markdown(board: Board) -> str:
    """Write Markdown tables."""
    paragraphs = []
    notes: list[str] = []
    for panel in _panels(board, COLUMNS_ON_PAPER):
        if panel.caption:
            paragraphs.append(markdown.escape(panel.caption))
        paragraphs.append(markdown.rows(panel))
        notes += [note.text for note in panel.notes]
    paragraphs += map(markdown.escape, dict.fromkeys(notes))
    return "\n\n".join(paragraphs)


def to_latex(board: Board) -> str:
    """Write LaTeX tables."""
    pages: list[Panel] = []
    for panel in _panels(board, COLUMNS_ON_PAPER):
        pages += _pages(panel)
    return latex.to_latex(Table("board", tuple(pages)))


def to_csv(board: Board) -> str:
    """Write a line for each task and system, with the system's place and facts, numbers
    unrounded.
    """
    facts: dict[str, None] = {}
    for system in board["systems"]:
        facts |= dict.fromkeys(system["facts"])
    placed = {}
    if board["over_tasks"]:
        placed = {each["system"]: each for each in board["over_tasks"]["systems"]}
    csv_file = io.StringIO()
    writer = csv.writer(csv_file, lineterminator="\n")
    of_task = ("task", "unit", "metric", "images", "captions", "protocol")
    of_system = ("system", "value", "low", "high", "best rank", "worst rank", "letters")
    of_all = ("place", "mean rank", "Borda", "wins", "best place", "worst place")
    writer.writerow([*of_task, *of_system, *of_all, *map(harmless, facts)])
    for task in board["tasks"]:
        described = [
            harmless(task[key])
            for key in ("name", "unit", "metric", "images", "captions", "protocol")
        ]
        for row in task["systems"]:
            system = board["systems"][row["system"]]
            cells = [harmless(system["name"]), row["value"], *row["interval"], *row["rank"]]
            place = placed.get(row["system"])
            over: list[Any] = [""] * len(of_all)
            if place:
                scores = [place[key] for key in ("place", "mean_rank", "borda", "wins")]
                over = [*scores, *place["places"]]
            own_facts = [system["facts"].get(fact, "") for fact in facts]
            writer.writerow([*described, *cells, row["letters"], *over, *own_facts])
    return csv_file.getvalue().rstrip()


WRITERS = {"text": to_text, "markdown": to_markdown, "latex": to_latex, "csv": to_csv}


def _panels(board: Board, columns: int) -> Iterator[Panel]:
    """The places over tasks, then the tasks: each by itself, or many as columns."""
    if board["over_tasks"]:
        yield _over_tasks(board)
    if len(board["tasks"]) <= FEW:
        yield from _tasks(board)
    else:
        yield from _many(board, columns)


def _pages(panel: Panel) -> Iterator[Panel]:
    """Cut a panel where its rows do not fit a page; its notes are below the last ones."""
    (group,) = panel.groups
    count = len(group.rows)
    caption = panel.caption
    for start in range(0, count, ROWS_ON_PAPER):
        rows = group.rows[start : start + ROWS_ON_PAPER]
        notes: tuple[Note, ...] = ()
        if start + len(rows) == count:
            notes = panel.notes
        page = replace(panel, groups=(replace(group, rows=rows),))
        yield replace(page, caption=caption, notes=notes)
        caption = f"{panel.caption.rstrip('.')}, continued."


def _over_tasks(board: Board) -> Panel:
    """The placed systems, the best first, then the others with what they miss."""
    over = board["over_tasks"]
    units = counted(over["units"], "unit")
    headings = ("", "place", "without one", "mean rank", "Borda", "wins", "tasks")
    rows = []
    for row in over["systems"]:
        system = board["systems"][row["system"]]
        scores = [number(row["mean_rank"], digits=2), number(row["borda"]), number(row["wins"])]
        place = f"{row['place']}"
        ends = from_to(row["places"])
        rows.append([system["name"], place, ends, *scores, f"{system['tasks']}"])
    for missing in over["unplaced"]:
        system = board["systems"][missing["system"]]
        rows.append([system["name"], *[MISSING] * 5, f"{system['tasks']}"])
    rule = RULES[over["rule"]].format(units=units)
    notes = [PLACE.format(rule=rule), WITHOUT, WINS, *_on_places(board)]
    panel = grid(headings, {"": rows})
    caption = f"{counted(len(board['systems']), 'system')} on {counted(len(board['tasks']), 'task')}, {units}"
    return replace(panel, caption=f"{caption}.", notes=tuple(map(Note, notes)), key="places")


def _on_places(board: Board) -> Iterator[str]:
    """How many orders hold, and who has no place."""
    over = board["over_tasks"]
    names = [system["name"] for system in board["systems"]]
    count = len(over["systems"])
    pairs = count * (count - 1) // 2
    if pairs:
        yield (
            f"{len(over['stable'])} of {counted(pairs, 'pair')} of systems keep their order whichever unit is left "
            "out."
        )
    for missing in over["unplaced"][:NAMED]:
        yield f"{names[missing['system']]} has no place: it is not measured on {few(missing['missing'])}."
    more = len(over["unplaced"]) - NAMED
    if more > 0:
        yield f"{counted(more, 'system')} more without a place: --json says what each misses."


def _tasks(board: Board) -> Iterator[Panel]:
    """A table for each task, the best system first."""
    for task in board["tasks"]:
        rows = []
        for row in _best_first(task):
            value = number(row["value"], row["interval"])
            name = board["systems"][row["system"]]["name"]
            rows.append([name, value, from_to(row["rank"]), row["letters"]])
        panel = grid(("", task["metric"], "rank", "letters"), {"": rows})
        yield replace(
            panel,
            caption=_described(task),
            notes=(Note(evaluated.of_units(RANKS, task)),),
            key=task["name"],
        )


def _many(board: Board, columns: int) -> Iterator[Panel]:
    """Tables of rank intervals, with a column for each task under its number."""
    tasks = board["tasks"]
    ranks_alone = evaluated.of_units(RANKS_ALONE, tasks[0])
    blocks = math.ceil(len(tasks) / columns)
    at_once = math.ceil(len(tasks) / blocks)
    for start in range(0, len(tasks), at_once):
        shown = tasks[start : start + at_once]
        keys = [f"T{key}" for key in range(start + 1, start + 1 + len(shown))]
        headings = ["", *keys]
        notes = [ranks_alone]
        for key, task in zip(keys, shown, strict=True):
            notes.append(f"{key}: {_described(task)}")
        ranks = [{row["system"]: from_to(row["rank"]) for row in task["systems"]} for task in shown]
        rows = []
        for system in _in_order(board):
            cells = [of_task.get(system, MISSING) for of_task in ranks]
            rows.append([board["systems"][system]["name"], *cells])
        panel = grid(headings, {"": rows})
        yield replace(panel, caption=CAPTION, notes=tuple(map(Note, notes)), key="ranks")


def _in_order(board: Board) -> list[int]:
    """The systems in the order of their places, then those without."""
    over = board["over_tasks"]
    order = []
    if over:
        order = [row["system"] for row in (*over["systems"], *over["unplaced"])]
    return [*order, *(system for system in range(len(board["systems"])) if system not in order)]


def _best_first(task: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    systems: Sequence[Mapping[str, Any]] = task["systems"]
    return sorted(systems, key=lambda row: row["value"], reverse=not task["less_is_better"])


def _described(task: Mapping[str, Any]) -> str:
    """A task in words: "flickr: RSUM, 1000 images x 5000 captions, protocol all"."""
    pool = sized(task["images"], task["captions"], *task["sides"])
    words = f"{printable(task['name'])}: {task['metric']}, {pool}, protocol {task['protocol']}"
    if task["unit"] != task["name"]:
        words += f", of the unit {printable(task['unit'])}"
    return words

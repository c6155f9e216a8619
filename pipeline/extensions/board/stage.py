"""What `pipeline board` does."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.extensions.board import measured, over_tasks, tables, tasks as named_tasks
from pipeline.extensions.board.command import BoardOptions
from pipeline.extensions.board.tasks import Ranking, Task
from pipeline.foundation.files import atomic, regular
from pipeline.foundation.parts import extras, lazy
from pipeline.foundation.parts.errors import InputError, counted, few, refusing
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores import judged, layout
from pipeline.judge.systems.scores.judged import Truth
from stages import named_systems, terminal
from stages.commands.compare import CompareOptions
from stages.compare import rank_alike
from stages.measure import Unwritten
from stages.progress import say

PAGE = "pipeline.extensions.board.page:to_html"
# The column of --models that names the systems.
SYSTEM = "system"


def board(paths: Paths, settings: Settings, options: BoardOptions) -> None:
    """Rank many systems on many tasks."""
    if options.page:
        extras.require("drawing", "--page")
    tasks = named_tasks.named(paths, settings, options.tasks, options.dataset)
    made = make(paths, settings, tasks, options)
    say(*(f"note: {note}" for note in made["notes"]))
    unwritten = Unwritten()
    if options.page:
        page = lazy.imported(PAGE)(made)
        with unwritten.of(options.page):
            atomic.write_text(options.page, page)
            say(f"{options.page}: the board as a page")
    if options.output == "json":
        terminal.echo(json.dumps(made, indent=1))
    else:
        terminal.echo(tables.WRITERS[options.output](made))
    unwritten.refuse()


def make(
    paths: Paths, settings: Settings, tasks: Sequence[Task], options: BoardOptions
) -> dict[str, Any]:
    """Measure all tasks, and place systems over them, as plain JSON values."""
    names = [task.name for task in tasks]
    rankings = named_tasks.rankings(names, options.metrics)
    qrels = named_tasks.of_tasks(names, options.qrels, "--qrels", Path)
    systems: dict[str, int] = {}
    for task in tasks:
        for name in task.systems:
            systems.setdefault(name, len(systems))
    facts = _facts(options.models, [*systems])
    said: list[tuple[str, str]] = []
    entries: list[dict[str, Any]] = []
    for task in tasks:
        right = _truth(paths, task, qrels.get(task.name), options)
        ranked, of_task = _of_task(paths, settings, task, right, rankings[task.name], options)
        said += [(task.name, note) for note in of_task]
        for entry in ranked:
            for place, name in enumerate(task.systems):
                entry["systems"][place]["system"] = systems[name]
            entries.append(entry)
    _unite(entries, options.units)
    counts = [0] * len(systems)
    for entry in entries:
        for of_system in entry["systems"]:
            counts[of_system["system"]] += 1
    listed = []
    for name, place in systems.items():
        listed.append({"name": name, "tasks": counts[place], "facts": facts.get(name, {})})
    placed, left_out = _over_tasks(entries, len(systems), options.rule)
    notes = [note for _, note in said]
    if len(tasks) > 1:
        notes = judged.together(said)
    notes += _notes(entries, listed, placed)
    return {
        "tasks": entries,
        "systems": listed,
        "over_tasks": placed,
        "left_out": left_out,
        "notes": notes,
    }


def _truth(paths: Paths, task: Task, qrels: Path | None, options: BoardOptions) -> Truth:
    """What is right on a task."""
    if qrels is None:
        qrels = task.qrels
    if qrels is not None and options.same_text:
        raise InputError(
            "--qrels and --same-text both say which candidates are positives; give one"
        )
    if qrels is not None:
        qrels = paths.root / qrels
        if not qrels.is_file():
            raise InputError(f"--qrels {qrels}: no such file")
    return Truth(qrels, options.same_text is not None)


def _of_task(
    paths: Paths,
    settings: Settings,
    task: Task,
    right: Truth,
    ranking: Ranking,
    options: BoardOptions,
) -> tuple[list[dict[str, Any]], list[str]]:
    """The entries of a task, one for each language and protocol, and notes."""
    groups = [*task.systems.values()]
    dataset = options.dataset or _dataset(groups) or settings.run.dataset
    asked = CompareOptions(
        systems=tuple(task.systems),
        dataset=dataset,
        columns=options.columns,
        truth=right,
        rules=options.rules,
        ties=options.ties,
    )
    for places in groups:
        named_systems.refuse_stale(paths, settings, places, dataset)
    with refusing(InputError, lambda error: f"task {task.name}: {error}"):
        alike = rank_alike(paths, settings, groups, asked)
        entries = []
        for words, view, ranked in measured.views_of(alike):
            name = " ".join(filter(None, (task.name, words)))
            entry = measured.measure(name, view, ranked, ranking, settings.evaluate)
            if words:
                entry["unit"] = task.name
            if task.unit:
                entry["unit"] = task.unit
            entries.append(entry)
    notes = [*alike.notes, *measured.over_seeds(task.systems)]
    return entries, notes


def _dataset(groups: Sequence[Sequence[named_systems.Place]]) -> str:
    """The data set of stores; "" for other files."""
    text, root = groups[0][0]
    store = root / text
    if not layout.is_store(store):
        return ""
    return layout.facts(layout.finished(store)).dataset


def _unite(entries: Sequence[dict[str, Any]], given: Sequence[str]) -> None:
    """Give tasks the units that the user says, and refuse tasks of one name."""
    names = [entry["name"] for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two tasks are called {name}; give one another name")
    for task, unit in named_tasks.units(names, given).items():
        entries[names.index(task)]["unit"] = unit


def _over_tasks(
    entries: Sequence[Mapping[str, Any]], systems: int, rule: str
) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """The places over tasks, None where there is one unit; and the order without each unit."""
    unit_of = {entry["name"]: entry["unit"] for entry in entries}
    if len(set(unit_of.values())) < 2:
        return None, []
    values: dict[str, dict[int, float]] = {}
    for entry in entries:
        of_task = {each["system"]: each["value"] for each in entry["systems"]}
        values[entry["name"]] = of_task
    complete = []
    unplaced = []
    for system in range(systems):
        missing = [task for task in values if system not in values[task]]
        if missing:
            unplaced.append({"system": system, "missing": missing})
        else:
            complete.append(system)
    ranks = {}
    for entry in entries:
        of_task = values[entry["name"]]
        of_complete = [of_task[system] for system in complete]
        ranks[entry["name"]] = over_tasks.ranks_of(of_complete, entry["less_is_better"])
    placed = over_tasks.place(ranks, unit_of, complete, rule)
    rows = []
    for row, system in enumerate(placed.systems):
        rows.append(
            {
                "system": system,
                "place": placed.places[row],
                "mean_rank": float(placed.scores.mean_rank[row]),
                "borda": float(placed.scores.borda[row]),
                "wins": float(placed.scores.wins[row]),
                "places": [*placed.ends[row]],
            }
        )
    words, _ = over_tasks.RULES[rule]
    over = {
        "rule": words,
        "units": len(placed.units),
        "systems": rows,
        "unplaced": unplaced,
        "stable": [[*pair] for pair in placed.stable],
    }
    left_out = []
    for other in placed.others:
        left_out.append({"unit": other.unit, "order": other.systems, "places": other.places})
    return over, left_out


def _notes(
    entries: Sequence[Mapping[str, Any]],
    systems: Sequence[Mapping[str, Any]],
    placed: Mapping[str, Any] | None,
) -> list[str]:
    """What is said of a board without places, or with one."""
    if len(systems) == 1:
        return [f"{systems[0]['name']} is the only system: there is nothing to compare it with"]
    if len(entries) == 1:
        return ["one task: there are no places over tasks"]
    if placed is None:
        return [
            f"all {counted(len(entries), 'task')} are of one unit, {entries[0]['unit']}: there are no places over tasks"
        ]
    if not placed["systems"]:
        return [
            "no system is on every task, so none has a place over tasks; a system is known by its name on each task: the "
            "file's name without its ending, or SYSTEM of TASK=SYSTEM=FILE"
        ]
    if len(placed["systems"]) == 1:
        alone = systems[placed["systems"][0]["system"]]["name"]
        return [f"only {alone} is on every task, so its place says nothing"]
    return []


def _facts(file: Path | None, systems: Sequence[str]) -> dict[str, dict[str, float]]:
    """The numbers of --models by system; cells without a number are left out."""
    if file is None:
        return {}
    with (
        refusing(OSError, lambda error: f"cannot read {file}: {error.strerror or error}"),
        refusing(
            (csv.Error, ValueError), lambda error: f"{file}: is not a CSV file in UTF-8: {error}"
        ),
    ):
        text = regular.text(file).removeprefix("\ufeff")
        rows = list(csv.DictReader(text.splitlines()))
    if not rows or SYSTEM not in rows[0]:
        raise InputError(
            f"{file}: expected a column `{SYSTEM}`, whose values are the systems' names, and columns of numbers"
        )
    facts: dict[str, dict[str, float]] = {}
    texts: dict[str, None] = {}
    for row in rows:
        numbers = {}
        for column, cell in row.items():
            if not column or column == SYSTEM or not cell:
                continue
            number = _number(cell)
            if number is None:
                texts[column] = None
            else:
                numbers[column] = number
        name = str(row[SYSTEM])
        if name in facts:
            raise InputError(f"{file}: has two lines of {name}; keep one")
        facts[name] = numbers
    unknown = [name for name in facts if name not in systems]
    if unknown:
        say(f"note: {file}: no system is called {few(unknown)}")
    if texts:
        say(f"note: {file}: text is left out ({few([*texts])}); write numbers, such as 4e8")
    return facts


def _number(cell: object) -> float | None:
    """A finite number; None for any other cell."""
    try:
        number = float(str(cell))
    except ValueError:
        return None
    if math.isfinite(number):
        return number
    return None

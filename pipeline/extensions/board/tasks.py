"""Which files are which system's on which task, as the user names them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from pipeline.extensions.board import folders
from pipeline.foundation.evaluation.metrics import Metric, parse
from pipeline.foundation.parts.errors import InputError, few, meant
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from stages import named_systems
from stages.named_systems import Place

Value = TypeVar("Value")
METRIC = "RSUM"
DIRECTIONS = ("i2t", "t2i")


@dataclass
class Task:
    """The systems of one task."""

    name: str
    unit: str = ""  # what it asks, where other tasks ask the same; "" for the task itself
    systems: dict[str, list[Place]] = field(default_factory=dict)  # each with its seeds
    qrels: Path | None = None  # what is right, where a folder has it


@dataclass(frozen=True)
class Ranking:
    """What the systems of a task are ranked by."""

    metric: Metric
    direction: str = ""  # "" for both, or for the one that there is


def named(
    paths: Paths, settings: Settings, arguments: Sequence[str], dataset: str | None
) -> list[Task]:
    """The tasks that a user names: TASK=FILE…, TASK=SYSTEM=FILE…, and folders.

    Raises:
        InputError: For what is neither, and for two systems of one name on a task.
    """
    tasks: dict[str, Task] = {}
    for argument in arguments:
        if os.path.isdir(paths.root / argument):  # also of a list that is too long for a name
            _add_folder(tasks, paths.root, argument)
            continue
        name, equals, files = argument.partition("=")
        if not equals and not os.path.exists(paths.root / argument):
            raise InputError(
                f"{argument}: no such folder; expected TASK=FILE, or a folder of tasks"
            )
        if not name.strip() or not files.strip() or os.path.exists(paths.root / argument):
            raise InputError(
                f"{argument}: expected TASK=FILE, or a folder of tasks; name the task that it is of, such as "
                f"flickr={argument.strip('=')}"
            )
        task = tasks.setdefault(name.strip(), Task(name.strip()))
        for system, places in _systems(paths, settings, files.strip(), dataset).items():
            if system in task.systems:
                raise _twice(task.name, system, [*task.systems[system], *places])
            task.systems[system] = places
    return [*tasks.values()]


def _add_folder(tasks: dict[str, Task], root: Path, folder: str) -> None:
    """Add what a folder holds."""
    seeds: dict[tuple[str, str], list[folders.Found]] = {}
    for found in folders.found_in(root / folder):
        task = tasks.setdefault(found.task, Task(found.task, found.unit))
        if found.is_qrels:
            task.qrels = Path(found.file)
            continue
        seeds.setdefault((found.task, found.system), []).append(found)
    for (name, system), files in seeds.items():
        places = [(each.file, Path()) for each in files]
        are_seeds = all(each.is_seed for each in files)
        if system in tasks[name].systems or (len(files) > 1 and not are_seeds):
            raise _twice(name, system, [*tasks[name].systems.get(system, []), *places])
        tasks[name].systems[system] = places


def _systems(
    paths: Paths, settings: Settings, files: str, dataset: str | None
) -> dict[str, list[Place]]:
    """The systems of FILE,FILE, of a pattern, or of SYSTEM=FILE,FILE."""
    title = ""
    if "=" in files:
        title, places = named_systems.named(paths, settings, files, dataset)
    if title:
        return {title: places}
    names = [files]
    if not os.path.exists(paths.root / files):
        names = [name.strip() for name in files.split(",")]
    systems: dict[str, list[Place]] = {}
    for name in named_systems.expanded(paths.root, names):
        _, places = named_systems.named(paths, settings, name, dataset)
        system = _called(name)
        if system in systems:
            raise _twice("", system, [*systems[system], *places])
        systems[system] = places
    return systems


def _called(name: str) -> str:
    """What the system of a file or store is called: hits/siglip.npz is siglip."""
    file, colon, arrays = name.partition(":")
    return f"{folders.stem(Path(file).name)}{colon}{arrays}"


def _twice(task: str, system: str, places: Sequence[Place]) -> InputError:
    """The error for two systems of one name."""
    where = f"task {task}: " if task else ""
    files = few([text for text, _ in places])
    return InputError(
        f"{where}two systems are called {system} ({files}); TASK=NAME=FILE names one, and TASK=NAME=FILE,FILE its seeds"
    )


def rankings(tasks: Sequence[str], given: Sequence[str]) -> dict[str, Ranking]:
    """What each task's systems are ranked by. given: METRIC, or TASK=METRIC."""
    chosen = of_tasks(tasks, given, "--metric", _ranking)
    default = _ranking(METRIC)
    return {task: chosen.get(task, default) for task in tasks}


def _ranking(text: str) -> Ranking:
    """R@1, or i2t R@1."""
    for direction in DIRECTIONS:
        rest = text.removeprefix(direction)
        if rest != text and rest[:1] in (" ", "_", ":"):
            metric = parse(rest[1:])
            if metric.summed is not None:
                raise InputError(f"{text}: {metric} is of both directions; leave out {direction}")
            return Ranking(metric, direction)
    return Ranking(parse(text))


def of_tasks(
    tasks: Sequence[str], given: Sequence[str], option: str, read: Callable[[str], Value]
) -> dict[str, Value]:
    """The value of an option for each task that has one.

    given: VALUE for all tasks, TASK=VALUE for one or for those of a pattern.
    """
    of_all: list[Value] = []
    of_one: dict[str, Value] = {}
    for text in given:
        name, equals, value = text.partition("=")
        matching = [task for task in tasks if fnmatchcase(task, name.strip())]
        if equals and not matching:
            raise InputError(f"{option} {text}: no task is called {name}; {meant(name, tasks)}")
        if not equals:
            of_all.append(read(text))
        for task in matching:
            if equals and task in of_one:
                raise InputError(f"{option}: is given twice for {task}; give it once")
            if equals:
                of_one[task] = read(value.strip())
    if len(of_all) > 1:
        raise InputError(f"{option}: is given twice for all tasks; write {option} TASK=… for one")
    values: dict[str, Value] = {}
    if of_all:
        values = dict.fromkeys(tasks, of_all[0])
    return values | of_one


def units(tasks: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """The unit of each task that the user gives one. given: NAME=TASK,TASK, or with patterns."""
    unit_of: dict[str, str] = {}
    for text in given:
        name, equals, listed = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--unit {text}: expected NAME=TASK,TASK, such as xm3600=xm3600-*")
        for pattern in listed.split(","):
            matching = [task for task in tasks if fnmatchcase(task, pattern.strip())]
            if not matching:
                raise InputError(
                    f"--unit {text}: no task is called {pattern}; {meant(pattern, tasks)}"
                )
            for task in matching:
                if unit_of.setdefault(task, name.strip()) != name.strip():
                    raise InputError(
                        f"--unit: {task} is in {unit_of[task]} and {name}; name it once"
                    )
    for unit in unit_of.values():
        if unit in tasks and unit_of.get(unit) != unit:
            raise InputError(
                f"--unit {unit}: a task that is not in it has this name; name the unit otherwise, or the task in it"
            )
    return unit_of

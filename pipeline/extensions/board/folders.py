"""The layouts of folders that hold the files of many systems on many tasks.

A layout is a function of a folder that gives what it finds, nothing where the folder is another
one, and a line in `LAYOUTS`.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.foundation.files import long_json
from pipeline.foundation.files.atomic import SET_ASIDE
from pipeline.foundation.files.expansion import unpacked
from pipeline.foundation.parts.errors import InputError, refusing

PREDICTIONS = "_predictions.json"
RANKED = "_pred.jsonl"
VECTORS = "_qry"
# Folders that VLM2Vec's evaluation makes for kinds of tasks.
SUITES = ("image", "video", "visdoc")
QRELS = "qrels"  # what a file of right answers in a task's folder is called, without its ending
STORE = ".zarr"  # the ending of a folder that is one system's scores
MODEL = "mteb_model_meta"
LEVELS = 3  # of mteb's predictions: subset, split, query
LONGEST_QUERY = 1 << 22  # characters; mteb keeps at most 1,000 candidates of a query
PIECE = 1 << 20  # characters that are read at once
# Endings of files that say how they are packed, not what they are.
PACKED = re.compile(r"\.(gz|bz2|xz|zst)$")


@dataclass(frozen=True)
class Found:
    """A file of a system on a task."""

    task: str
    system: str
    file: str  # as `open_system` takes it
    unit: str = ""  # what it asks, where several tasks ask the same; "" for the task itself
    is_seed: bool = False  # whether it may be one of several runs of the system
    is_qrels: bool = False  # whether it says what is right on the task


def found_in(folder: Path) -> list[Found]:
    """What a folder holds, by the first layout that finds anything.

    Raises:
        InputError: For a folder of another layout.
    """
    for layout in LAYOUTS.values():
        files = layout(folder)
        if files:
            return files
    raise InputError(
        f"{folder}: holds no tasks; expected {folder.name}/TASK/SYSTEM.npz or other files of scores, mteb's "
        f"MODEL/TASK_predictions.json, or MMEB's MODEL/TASK_pred.jsonl; files of one task are TASK={folder}/*"
    )


def stem(name: str) -> str:
    """What a file's system is called: its name without the ending."""
    return Path(PACKED.sub("", name)).stem


def _mteb(folder: Path) -> list[Found]:
    """MODEL/…/TASK_predictions.json; a task has one or several subsets, such as languages, of which
    a model may have some.
    """
    files = [file for file in _files(folder) if file.name.endswith(PREDICTIONS)]
    subsets = {file: _subsets(file) for file in files}
    of_tasks: dict[str, set[tuple[str, str]]] = {}
    for file, parts in subsets.items():
        of_tasks.setdefault(file.name, set()).update(parts)
    found = []
    for file, parts in subsets.items():
        task = file.name.removesuffix(PREDICTIONS)
        system = _model(folder, file)
        of_task = of_tasks[file.name]
        if len(of_task) < 2 or not parts:  # without any, its reader says what is wrong
            found.append(Found(task, system, str(file)))
            continue
        splits = {split for _, split in of_task}
        for subset, split in parts:
            name = f"{task} {subset}"
            if len(splits) > 1:
                name = f"{name} {split}"
            found.append(Found(name, system, f"{file}:{subset}:{split}", unit=task))
    return found


def _mmeb(folder: Path) -> list[Found]:
    """MODEL/…/TASK_pred.jsonl, or where it is missing the vectors, TASK_qry."""
    files: dict[Path, Path] = {}
    for file in _files(folder):
        if file.name.endswith(VECTORS):
            files[file.with_name(file.name.removesuffix(VECTORS))] = file
    for file in _files(folder):
        if file.name.endswith(RANKED):
            files[file.with_name(file.name.removesuffix(RANKED))] = file
    return [
        Found(task.name, _model(folder, files[task]), str(files[task])) for task in sorted(files)
    ]


def _ours(folder: Path) -> list[Found]:
    """TASK/SYSTEM.npz or other files of scores, TASK/SYSTEM.zarr, TASK/SYSTEM/ with a file for each
    seed, and TASK/qrels.txt.
    """
    found = []
    for task in _entries(folder):
        if not task.is_dir():
            continue
        for entry in _entries(task):
            name = stem(entry.name)
            if entry.is_dir() and entry.suffix != STORE:
                for seed in _entries(entry):
                    found.append(Found(task.name, entry.name, str(seed), is_seed=True))
            else:
                found.append(Found(task.name, name, str(entry), is_qrels=name == QRELS))
    return found


# Name of a layout -> what finds its files.
LAYOUTS: dict[str, Callable[[Path], list[Found]]] = {"mteb": _mteb, "mmeb": _mmeb, "ours": _ours}


def _entries(folder: Path) -> list[Path]:
    """What is in a folder, in order of the names, but for what is hidden or set aside."""
    with refusing(OSError, lambda error: f"cannot read {folder}: {error.strerror or error}"):
        entries = sorted(folder.iterdir())
    return [
        entry
        for entry in entries
        if not entry.name.startswith(".") and entry.suffix not in SET_ASIDE
    ]


def _files(folder: Path) -> Iterator[Path]:
    """All files below a folder, in order of their names, without those inside of stores."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.endswith(STORE))
        for name in sorted(names):
            yield Path(place, name)


def _model(folder: Path, file: Path) -> str:
    """The model whose file it is: the first folder below, or the folder itself, as which mteb's
    org__model is known.
    """
    if "__" in folder.resolve().name:
        return folder.resolve().name
    for name in file.relative_to(folder).parts[:-1]:
        if name not in SUITES:
            return name
    return folder.resolve().name


def _subsets(file: Path) -> list[tuple[str, str]]:
    """The subsets of mteb's predictions, each with its split."""
    parts: dict[tuple[str, str], None] = {}
    with (
        refusing(ValueError, lambda error: f"{file}: {error}"),
        refusing(OSError, lambda error: f"cannot read {file}: {error.strerror or error}"),
        unpacked(file) as stream,
        io.TextIOWrapper(stream, "utf-8-sig") as text,
    ):
        pieces = iter(lambda: text.read(PIECE), "")
        for names, _ in long_json.nested(pieces, LEVELS, LONGEST_QUERY):
            if names[0] != MODEL and len(names) == LEVELS:
                subset, split, _ = names
                parts[subset, split] = None
    return [*parts]

"""Numbers of the documentation lie in files that commands write, with the command, commit, day and
machine of each, or in CSV files that were typed in from printed results.

A benchmark writes its file into the folder that the variable NUMBERS names:

    NUMBERS=docs/measured/data python -m benchmarks.slopes

`python -m benchmarks.docs` puts the files into the pages.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.foundation.compute import machine, made_with
from pipeline.foundation.files import atomic
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.parts.errors import InputError

ROOT = Path(__file__).parents[1]
FILES = ROOT / "docs" / "measured" / "data"


Columns = Sequence[tuple[str, str]]
"""Of each column its heading, and how Python formats its values: "" for text."""
Rows = Sequence[Sequence[Any]]
"""A value for each column: None where there is none, two where the second stands in brackets."""


def keep(name: str, columns: Columns, rows: Rows) -> None:
    """Write a benchmark's numbers where the variable NUMBERS is set."""
    if folder := os.environ.get("NUMBERS"):
        write(Path(folder) / f"{name}.json", _command(), columns, rows)


def write(
    path: Path, command: str, columns: Columns, rows: Rows, commit: str | None = None
) -> None:
    """Write the numbers of a table, and what made them: a command of this commit or this clone, on
    this machine.
    """
    if uneven := [row for row in rows if len(row) != len(columns)]:
        raise ValueError(f"expected {len(columns)} values in a row, got {uneven[0]}")
    said = {
        "made_by": {
            "command": command,
            "commit": commit or BEGUN_WITH,
            "day": datetime.now(UTC).date().isoformat(),
            "machine": f"{machine.processor()}, {os.cpu_count()} cores",
        },
        "columns": [list(column) for column in columns],
        "rows": [list(row) for row in rows],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_text(
        path, json.dumps(said | {"digest": digest(said)}, indent=1, ensure_ascii=False) + "\n"
    )
    print(f"{path}: {len(rows)} rows", flush=True)


def _command() -> str:
    """What was typed, with modules by their names."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return " ".join(
        [
            "python",
            *(["-m", spec.name.removesuffix(".__main__")] if spec else sys.argv[:1]),
            *sys.argv[1:],
        ]
    )


BEGUN_WITH = made_with.commit() or "unknown"
"""Read when a benchmark starts: a commit made while it runs is not what it measures."""


def read(path: Path) -> dict[str, Any]:
    """Read what `write` wrote. A file that was edited is an InputError."""
    found: dict[str, Any] = from_json(path.read_text(encoding="utf-8"))
    if found.get("digest") != digest(
        {key: value for key, value in found.items() if key != "digest"}
    ):
        command = found.get("made_by", {}).get("command", "its command")
        raise InputError(f"{path}: was edited; write it again by {command}")
    return found


def rendered(found: Mapping[str, Any]) -> str:
    """The table as a page shows it, and what made it."""
    columns, made = found["columns"], found["made_by"]
    text = sum(not form for _, form in columns)
    return (
        f"{table([heading for heading, _ in columns], shown(columns, found['rows']), text)}\n\n"
        f"*(`{made['command']}`, commit {made['commit']}, {made['day']}, {made['machine']})*"
    )


def rendered_record(path: Path) -> str:
    """A CSV file that was typed in from printed results, as a page shows it: its first line says
    which command printed them, when, and on which machine.
    """
    said, *lines = path.read_text(encoding="utf-8").splitlines()
    head, *rows = csv.reader(lines)
    return f"{table(head, rows)}\n\n*({said.removeprefix('# ')})*"


def rendered_file(name: str) -> str:
    """The table of a file of docs/measured/data, by its name without the suffix."""
    record = FILES / f"{name}.csv"
    if record.exists():
        return rendered_record(record)
    return rendered(read(FILES / f"{name}.json"))


def shown(columns: Columns, rows: Rows) -> list[list[str]]:
    """Values as a page shows them."""
    return [
        [_cell(value, form) for value, (_, form) in zip(row, columns, strict=True)] for row in rows
    ]


def _cell(value: Any, form: str) -> str:
    if isinstance(value, list):
        return f"{_cell(value[0], form)} ({_cell(value[1], form)})"
    return "" if value is None else format(value, form).replace("-", "−" if form else "-")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], text: int = 1) -> str:
    """A table of Markdown, its first columns text and the others numbers."""
    lines = [head, [":--"] * text + ["--:"] * (len(head) - text), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

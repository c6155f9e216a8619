"""Measure files of scores as another tool does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.foundation.parts.errors import InputError, counted
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores import judged
from pipeline.judge.systems.scores.conventions import (
    Conventions,
    Numbers,
    OfLists,
    OfMatrices,
    of_tool,
)
from pipeline.judge.systems.scores.foreign import open_system, opening
from stages import named_systems, terminal
from stages.commands.evaluate import EvaluateOptions
from stages.progress import say

if TYPE_CHECKING:
    from pipeline.foundation.settings import AnySettings


def evaluate_as(paths: Paths, settings: AnySettings, options: EvaluateOptions) -> None:
    """Print the numbers of a tool for each file, by its own names."""
    assert options.tool is not None
    tool = of_tool(options.tool)
    measured: list[tuple[str, Numbers]] = []
    read_as: list[tuple[str, str]] = []
    for name in named_systems.expanded(paths.root, options.files):
        label, places = named_systems.named(paths, settings, name, options.dataset)
        named_systems.refuse_other_dataset(places, options.dataset)
        for text, root in places:
            title = label if len(places) == 1 else ""
            numbers = _measured(tool, paths, text, root, options)
            measured.append((title or Path(text.split(":")[0]).stem, numbers))
            read_as += numbers.read_as
    named_systems.say_read_as(dict.fromkeys(read_as))
    if options.output == "json":
        terminal.echo(_json(measured, options.tool, tool.ties))
        return
    say(f"as {options.tool}: by its definitions, {tool.ties}, and without intervals")
    terminal.echo(_text(measured))


def _measured(
    tool: Conventions, paths: Paths, text: str, root: Path, options: EvaluateOptions
) -> Numbers:
    """The numbers of one file."""
    if isinstance(tool, OfMatrices):
        columns = replace(options.columns, usage=options.usage, judgements=options.truth.qrels)
        system = open_system(text, columns, options.normalise, root)
        if options.truth.is_chosen:
            known = system.manifest(columns.manifest, paths.manifest)
            system = judged.judge(system, options.truth, known)
        numbers = tool.measure(system, options.metrics)
        return numbers._replace(read_as=[(text, system.read_as), *numbers.read_as])
    assert isinstance(tool, OfLists)
    named = opening.places(text, root)
    path, parts = named[0]
    if len(named) > 1 or path.is_dir() or opening.kind_of(path) not in ("text", "parquet"):
        raise InputError(
            f"{text}: --as {options.tool} measures lists with the ids of queries and candidates, such as a "
            "run, and no matrix or vectors"
        )
    return tool.measure(path, parts, options.truth.qrels, options.metrics)


def _json(measured: Sequence[tuple[str, Numbers]], tool: str, ties: str) -> str:
    entries = []
    for title, numbers in measured:
        entry: dict[str, Any] = {"system": title, "as": tool, "ties": ties}
        entry["queries"] = numbers.queries
        entry["numbers"] = numbers.values
        entry["read_as"] = dict(numbers.read_as)
        entries.append(entry)
    return json.dumps(entries, indent=1)


def _text(measured: Sequence[tuple[str, Numbers]]) -> str:
    """A line for each number, with a column for each file."""
    lines = []
    for title, numbers in measured:
        of_each = [counted(count, noun) for noun, count in numbers.queries.items()]
        lines.append(f"{title}: {', '.join(of_each)}")
    names = [*measured[0][1].values]
    width = max(map(len, names))
    for name in names:
        values = [f"{numbers.values[name]:.5f}" for _, numbers in measured]
        lines.append(f"  {name.ljust(width)}  {'  '.join(values)}")
    return "\n".join(lines)

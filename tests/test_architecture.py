"""The house's own rules: imports point one way, stages need no command line, and ARCHITECTURE.md
says what is there.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted([*ROOT.glob("pipeline/**/*.py"), *ROOT.glob("stages/**/*.py")])
COMMAND_LINE = {
    "stages.cli",
    "stages.commands",
    "stages.declared",
    "stages.measuring",
    "stages.options",
}
SHARED = {
    "stages.card",
    "stages",
    "stages.arguments",
    "stages.progress",
    "stages.terminal",
    "stages.evaluate_as",
    "stages.evaluate_run",
    "stages.hits",
    "stages.measure",
    "stages.missing_rows",
    "stages.named_systems",
    "stages.scored_systems",
    "stages.values",
}


def module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module(file) for file in FILES}


@cache
def import_statements(file: Path) -> list[ast.Import | ast.ImportFrom]:
    """Those of a file, also those in functions and below `if TYPE_CHECKING:`. They are statements:
    expressions are not walked through, which would take ten times as long.
    """
    found: list[ast.Import | ast.ImportFrom] = []
    left: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while left:
        node = left.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, block, ())
            if isinstance(inner, list):
                left.extend(inner)
    return found


def imports(file: Path) -> Iterator[str]:
    """The project's modules that a file imports."""
    for node in import_statements(file):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif node.module:
            assert node.level == 0, f"{file}: relative import"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (
                name if name in MODULES else node.module
                for name in inner
                if name in MODULES or node.module in MODULES
            )


@cache
def graph_of_files() -> dict[str, set[str]]:
    """Which of the project's modules each module imports."""
    return {module(file): {*imports(file)} - {module(file), "pipeline"} for file in FILES}


def room(name: str) -> str:
    """The room of a module, such as `judge/systems`, or `stages`."""
    first, *rest = name.split(".")
    return "/".join(rest[:2]) if first == "pipeline" else first


def wing(name: str) -> str:
    """The wing of a module; what joins them is of the wing `run`."""
    first, *rest = name.split(".")
    return rest[0] if first == "pipeline" and rest else "run"


def is_extension(name: str) -> bool:
    """Whether a module is an extension's; the list of extensions is the core's."""
    return name.startswith("pipeline.extensions.")


def rooms() -> dict[str, set[str]]:
    """Which rooms each room imports."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, imported in graph_of_files().items():
        if is_extension(name):
            continue
        found[room(name)] |= {room(other) for other in imported} - {room(name)}
    return dict(found)


def against_the_rules(file: Path) -> set[str]:
    """What a file imports against the direction."""
    every: set[str] = set()
    for node in import_statements(file):
        if isinstance(node, ast.Import):
            every |= {name.name for name in node.names}
        else:
            every.add(f"{node.module}")
    if is_extension(module(file)):
        return set()
    if module(file).startswith("pipeline"):
        return {name for name in every if name.split(".")[0] in ("stages", "click", "dvc")}
    if is_command_line(module(file)):
        return set()
    return every & COMMAND_LINE


def is_command_line(name: str) -> bool:
    return name in COMMAND_LINE or name.startswith("stages.commands.")


@pytest.mark.slow
def test_imports_point_one_way() -> None:
    assert {module(file): wrong for file in FILES if (wrong := against_the_rules(file))} == {}


@pytest.mark.specification
@pytest.mark.parametrize("graph", [graph_of_files, rooms], ids=["files", "rooms"])
def test_no_circles(graph: Callable[[], dict[str, set[str]]]) -> None:
    TopologicalSorter(graph()).prepare()  # raises CycleError with the circle


@pytest.mark.specification
def test_architecture_lists_the_rooms_and_each_imports_only_those_above_it() -> None:
    listed = re.findall(
        r"^\| `(\w+/\w+)(?:/|\.py)` \|",
        (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    there = {
        room(name)
        for name in MODULES
        if name.startswith("pipeline.") and name.count(".") >= 2 and not is_extension(name)
    }
    assert sorted(listed) == sorted(there)
    above: set[str] = set()
    for name in listed:
        assert rooms().get(name, set()) <= above, f"{name} imports a room that stands below it"
        above.add(name)


# Wing -> the wings that it imports.
WINGS = {
    "foundation": {"foundation"},
    "judge": {"foundation", "judge"},
    "make": {"foundation", "make"},
    "run": {"foundation", "judge", "make", "run"},
}
# What the wing that makes imports of the judge: the form of stored scores, and of scored pairs.
STORED_SCORES = {
    "pipeline.judge.systems.reranking.base",
    "pipeline.judge.systems.scores",
    "pipeline.judge.systems.scores.judged",
    "pipeline.judge.systems.scores.layout",
    "pipeline.judge.systems.scores.made",
    "pipeline.judge.systems.scores.system",
}


def test_the_judge_and_what_makes_do_not_import_each_other() -> None:
    wrong = []
    for name, imported in graph_of_files().items():
        if is_extension(name):
            continue
        for other in imported:
            is_stored = wing(name) == "make" and other in STORED_SCORES
            if wing(other) not in WINGS[wing(name)] and not is_stored:
                wrong.append((name, other))
    assert wrong == []


def test_nothing_imports_an_extension_but_itself() -> None:
    wrong = []
    for name, imported in graph_of_files().items():
        for other in imported:
            if is_extension(other) and room(other) != room(name):
                wrong.append((name, other))
    assert wrong == []


def test_the_report_needs_nothing_that_extracts_or_trains() -> None:
    """Parts bring their names for display, and are found in the tables of parts by their names."""
    wrong = []
    for name, imported in graph_of_files().items():
        if name.startswith("pipeline.run.report"):
            wrong += [(name, other) for other in imported if wing(other) == "make"]
    assert wrong == []


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_a_page_names_files_that_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:pipeline|stages|tests|manifests)/[\w/.]*)`", text)
    assert [name for name in named if "NAME" not in name and not (ROOT / name).exists()] == []
    folders = [Path(name).parent for name in named if "NAME" in name]
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []


def test_options_which_all_settings_read_import_no_readers_of_weights() -> None:
    for file in FILES:
        if file.name != "options.py":
            continue
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom):
                assert node.module != "pipeline.foundation.files.weights", file


def test_no_two_test_files_are_called_alike() -> None:
    names = [
        file.name for file in ROOT.glob("tests/**/test_*.py")
    ]  # pytest imports them by their names alone
    assert sorted({*names}) == sorted(names)


@pytest.mark.slow
def test_yaml_and_json_are_parsed_within_limits() -> None:
    parsing = {
        module(file)
        for file in FILES
        if re.search(r"\b(json\.loads?|yaml\.\w*load\w*)\(", file.read_text(encoding="utf-8"))
    }
    assert parsing == {"pipeline.foundation.files.parsing"}


def test_every_command_is_listed_and_every_stage_is_a_command() -> None:
    from stages.cli import COMMANDS, FILES, file_of

    assert {name for names in FILES.values() for name in names} <= COMMANDS.keys()
    files = {file_of(name) for name in COMMANDS}
    assert {f"stages.commands.{file}" for file in files} == {
        name for name in MODULES if name.startswith("stages.commands.")
    }
    assert {f"stages.{file}" for file in files} == {
        name for name in MODULES if name.startswith("stages.") and not is_command_line(name)
    } - SHARED

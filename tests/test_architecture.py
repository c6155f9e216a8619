"""The house's own rules: imports point one way, no stage imports another, no circles."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted([*ROOT.glob("pipeline/**/*.py"), *ROOT.glob("stages/**/*.py")])
SHARED = {"stages.by_hand", "stages.measuring", "stages.options", "stages.progress", "stages.rewriting",
          "stages.scored_systems", "stages.terminal", "stages.workplace", "stages"}


def module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module(file) for file in FILES}


def imports(file: Path) -> Iterator[str]:
    """The project's modules that a file imports when it is loaded; those inside functions are deliberate. A package's
    own below `if TYPE_CHECKING:` are imported when they are used, and count."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    if file.name == "__init__.py":
        body = [*body, *(inner for node in body if isinstance(node, ast.If) for inner in node.body)]
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file}: relative import"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in inner
                        if name in MODULES or node.module in MODULES)


@pytest.mark.parametrize("file", FILES, ids=module)
def test_imports_point_one_way(file: Path) -> None:
    every = {name.name if isinstance(node, ast.Import) else f"{node.module}"
             for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
             if isinstance(node, ast.Import | ast.ImportFrom) for name in node.names}
    if module(file).startswith("pipeline"):
        assert not any(name.split(".")[0] in ("stages", "click", "dvc") for name in every)
    elif module(file) != "stages.cli":
        assert {name for name in every if name.startswith("stages")} <= SHARED


def test_no_circles() -> None:
    graph = {module(file): {name for name in imports(file) if name != module(file)} for file in FILES}
    TopologicalSorter(graph).prepare()  # raises CycleError with the circle


def test_no_two_test_files_are_called_alike() -> None:
    names = [file.name for file in ROOT.glob("tests/**/test_*.py")]  # pytest imports them by their names alone
    assert sorted({*names}) == sorted(names)


def test_yaml_and_json_are_parsed_within_limits() -> None:
    parsing = {module(file) for file in FILES
               if re.search(r"\b(json\.loads?|yaml\.\w*load\w*)\(", file.read_text(encoding="utf-8"))}
    assert parsing == {"pipeline.files.parsing", "pipeline.files.weights"}  # weights.yaml is not the user's


def test_every_command_is_listed_and_every_stage_is_a_command() -> None:
    from stages.cli import COMMANDS

    commands = {f"stages.{name.replace('-', '_')}" for name in COMMANDS}
    assert commands == {name for name in MODULES if name.startswith("stages.")} - SHARED - {"stages.cli"}

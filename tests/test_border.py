"""The core does without each extension: it is removed from a copy, and the rest still works."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from pipeline.extensions import EXTENSIONS

ROOT = Path(__file__).parents[1]
# The core's own rooms of tests; others also test extensions or what pages say of them.
CORE = (
    "compute",
    "evaluation",
    "features/store",
    "files",
    "heads",
    "manifest",
    "provenance",
    "report",
    "settings",
    "systems/fusion",
    "systems/rescoring",
    "systems/scores",
    "test_architecture.py",
    "test_docstrings.py",
    "test_lazy.py",
    "text",
    "training/test_batches.py",
    "training/test_divergence.py",
    "training/test_optimizer.py",
)
COPIED = ("pipeline", "stages", "manifests", "tests", "benchmarks", "docs")
LISTED = "pipeline/extensions/__init__.py"
# Pages whose tables name files, also those of extensions.
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md")


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, with what is compiled of it."""
    folder = tmp_path_factory.mktemp("project")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.png"))
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    return folder


@pytest.fixture(params=EXTENSIONS)
def without(
    request: pytest.FixtureRequest, copied: Path, tmp_path: Path
) -> Iterator[tuple[str, Path]]:
    """The copy without an extension: its folder, its tests, its line and those of pages that name
    its files; they come back.
    """
    marks = dict.fromkeys(PAGES, f"pipeline/extensions/{request.param}/")
    marks[LISTED] = f'    "{request.param}"'
    texts = {name: (copied / name).read_text(encoding="utf-8") for name in marks}
    for name, mark in marks.items():
        kept = [line for line in texts[name].splitlines(keepends=True) if mark not in line]
        (copied / name).write_text("".join(kept), encoding="utf-8")
    for wing in ("pipeline", "tests"):
        (copied / wing / "extensions" / request.param).rename(tmp_path / wing)
    yield request.param, copied
    for wing in ("pipeline", "tests"):
        (tmp_path / wing).rename(copied / wing / "extensions" / request.param)
    for name, text in texts.items():
        (copied / name).write_text(text, encoding="utf-8")


def names_in(folder: Path) -> set[str]:
    """What the command line and the tables of parts hold, imported anew from a folder."""
    with multiprocessing.get_context("fork").Pool(1) as process:
        return process.apply(imported_anew, (folder,))


def imported_anew(folder: Path) -> set[str]:
    for name in list(sys.modules):
        if name.partition(".")[0] in COPIED:
            del sys.modules[name]
    sys.path.insert(0, str(folder))
    # What is compiled without an extension would be taken for the next one's.
    sys.dont_write_bytecode = True
    kinds = import_module("pipeline.foundation.settings.kinds")
    cli = import_module("stages.cli")
    for module in (kinds, cli):
        assert Path(str(module.__file__)).is_relative_to(folder)
    names = {f"command {name}" for name in cli.commands()}
    for kind in kinds.TABLES:
        names.add(f"kinds of parts {kind}")
        names |= {f"{kind} {name}" for name in kinds.TABLES[kind]}
    return names


@pytest.mark.slow
def test_the_core_lists_all_else_without_it(without: tuple[str, Path]) -> None:
    name, folder = without
    added = import_module(f"pipeline.extensions.{name}").EXTENSION
    gone = {f"command {command}" for command in added.commands}
    for kind, parts in added.parts.items():
        gone |= {f"{kind} {part}" for part in parts}
    left = names_in(folder)
    assert not gone & left
    assert {"command evaluate", "command train", "poolings adpool", "kinds of parts texts"} <= left


@pytest.mark.border
def test_the_quick_tests_pass_without_it(without: tuple[str, Path]) -> None:
    _, folder = without
    folders = [f"tests/{name}" for name in CORE]
    chosen = "not slow and not browser and not ranx and not border"
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", chosen, *folders],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]

"""The core does without each extension: it is removed from a copy, and the rest still works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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
# What the command line and the tables of parts hold.
NAMED = """
from pipeline.foundation.settings.kinds import TABLES
from stages import cli
for name in cli.commands():
    print(f"command {name}")
for kind in TABLES:
    print(f"kinds of parts {kind}")
    for name in TABLES[kind]:
        print(f"{kind} {name}")
"""


@pytest.fixture(params=EXTENSIONS)
def without(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """A copy of the project without an extension: its folder, its tests and its line."""
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__", "*.png")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    shutil.rmtree(tmp_path / "pipeline" / "extensions" / request.param)
    shutil.rmtree(tmp_path / "tests" / "extensions" / request.param)
    listed = tmp_path / "pipeline" / "extensions" / "__init__.py"
    lines = listed.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(f'    "{request.param}"')]
    assert len(kept) == len(lines) - 1
    listed.write_text("".join(kept), encoding="utf-8")
    return request.param, tmp_path


def run(folder: Path, *command: str) -> str:
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    return ran.stdout


@pytest.mark.slow
def test_the_core_lists_all_else_without_it(without: tuple[str, Path]) -> None:
    name, folder = without
    added = import_module(f"pipeline.extensions.{name}").EXTENSION
    gone = {f"command {command}" for command in added.commands}
    for kind, parts in added.parts.items():
        gone |= {f"{kind} {part}" for part in parts}
    left = {*run(folder, "-c", NAMED).splitlines()}
    assert not gone & left
    assert {"command evaluate", "command train", "poolings adpool", "kinds of parts texts"} <= left


@pytest.mark.border
def test_the_quick_tests_pass_without_it(without: tuple[str, Path]) -> None:
    _, folder = without
    folders = [f"tests/{name}" for name in CORE]
    chosen = "not slow and not browser and not ranx and not border"
    run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", chosen, *folders)

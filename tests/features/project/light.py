"""An environment of the package and what it depends on, without extras: links to what is installed
here.
"""

from __future__ import annotations

import json
import os
import subprocess
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

# Runs commands in one process; of each its exit code and what it printed, in JSON.
RUN = """
import contextlib, io, json, signal, sys
from stages.cli import main
answers = []
for command in json.loads(sys.argv[1]):
    sys.argv = ["pipeline", *command]
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            main()
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException as error:
        code = f"{type(error).__name__}: {error}"
    answers.append((code, output.getvalue()))
print(json.dumps(answers))
"""


def make(folder: Path, installed: Path) -> Path:
    """Make the environment, and return its Python."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    libraries = folder / "libraries"
    for known in _needed(next(installed.glob("*.dist-info"))):
        _link(known, libraries)
    (site / "light.pth").write_text(f"{installed}\n{libraries}\n", encoding="utf-8")
    return folder / "bin" / "python"


def run(python: Path, folder: Path, *commands: list[str]) -> list[tuple[Any, str]]:
    """Run commands in a folder: of each its exit code, or its error, and what it printed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(
        [python, "-c", RUN, json.dumps(commands)],
        cwd=folder,
        text=True,
        capture_output=True,
        check=False,
        timeout=300,
        env=clean | {"OMP_NUM_THREADS": "1"},
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    answers: list[tuple[Any, str]] = json.loads(ran.stdout.splitlines()[-1])
    return answers


def _needed(wheel: Path) -> list[Distribution]:
    """The distributions that a wheel needs without extras, and those that these need."""
    waiting, known = [(Distribution.at(wheel), "")], dict[tuple[str, str], Distribution]()
    while waiting:
        each, extra = waiting.pop()
        for line in each.requires or ():
            needs = Requirement(line)
            if needs.marker is None or needs.marker.evaluate({"extra": extra}):
                for wanted in needs.extras or {""}:
                    if (needs.name, wanted) not in known:
                        known[needs.name, wanted] = distribution(needs.name)
                        waiting.append((known[needs.name, wanted], wanted))
    return list(known.values())


def _link(installed: Distribution, libraries: Path) -> None:
    """Link a distribution's files; its folders as a whole, unless other distributions share
    them.
    """
    for file in installed.files or ():
        if ".." in file.parts or file.parts[0] == "__pycache__":
            continue
        source, depth = Path(str(installed.locate_file(""))), 1
        while (
            depth < len(file.parts)
            and not (source.joinpath(*file.parts[:depth]) / "__init__.py").exists()
            and file.parts[0] == "google"
        ):
            depth += 1
        target = libraries.joinpath(*file.parts[:depth])
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(source.joinpath(*file.parts[:depth]))

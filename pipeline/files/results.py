"""Results are read with a clear refusal, and written whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.errors import InputError


def read_json(path: Path, command: str) -> dict[str, Any]:
    """A file of results. Raises InputError that names the `command` that makes it where it cannot be read."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(tree, dict):
            raise ValueError
        return tree
    except FileNotFoundError:
        raise InputError(f"{path}: not there; make it with `pipeline {command}`") from None
    except ValueError:
        raise InputError(f"{path}: not JSON; make it again with `pipeline {command}`") from None


@contextmanager
def updating(folder: Path, names: Collection[str]) -> Iterator[Path]:
    """A copy of `folder` without the files of these names (NAME.pdf, NAME.tex, …), to fill; it takes the place of
    `folder` at the end. If something is raised, nothing changes."""
    making = folder.with_name(f"{folder.name}.creating")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    for file in folder.glob("*"):
        if file.is_file() and file.stem not in names:
            shutil.copy2(file, making)
    yield making
    shutil.rmtree(folder, ignore_errors=True)
    making.rename(folder)


def texts(folder: Path, names: Iterable[str], ending: str) -> list[str]:
    """What the files NAME.ending hold, in the order of the names, of those that are there."""
    files = (folder / f"{name}.{ending}" for name in names)
    return [file.read_text(encoding="utf-8") for file in files if file.exists()]

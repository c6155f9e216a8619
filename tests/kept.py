"""Folders that take seconds to make are made once and kept in pytest's cache folder between runs,
for as long as nothing changes of what makes them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path

import given_cpus

from pipeline.foundation.compute import measured

FOLDER = "made"
"""Where they are below pytest's cache folder; `make test FRESH=1` forgets them."""
ROOT = Path(__file__).parents[1]
Make = Callable[[Path], object]


def copy_of(kept: Path, key: Callable[[], str], make: Make, copy: Path) -> Path:
    """Copy a kept folder to where a test may spoil it; where none of this key is kept, it is made
    first.

    kept: The folder of all that is kept under one name.
    key: Says what it is made by; one of another key is forgotten.
    make: Fills a new folder. It is moved then: a path of it that is followed leads nowhere.
    """
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = key()
        made = kept / wanted
        if not made.exists():
            for other in kept.iterdir():
                if other.is_dir():
                    shutil.rmtree(other)
            unfinished = kept / "unfinished"
            unfinished.mkdir()
            make(unfinished)
            if key() != wanted:  # edited meanwhile: it is of neither state
                return unfinished.rename(copy)
            unfinished.rename(made)
        return Path(shutil.copytree(made, copy, symlinks=True))


def key(module: Path) -> str:
    """Digest what makes a folder that a module of the tests makes: code as it was imported and as
    it is now, settings, libraries, and the CPU.
    """
    libraries = sorted(path.name for path in Path(sysconfig.get_path("purelib")).glob("*-info"))
    variables = {name: os.environ.get(name) for name in given_cpus.VARIABLES}
    del variables[measured.FOLDER]  # another folder each time; given_cpus.py says what is there
    own = _digest([module])
    python = platform.python_version()
    facts = (_AT_START, _digest(_code()), own, python, libraries, variables, measured.cpu())
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _code() -> list[Path]:
    """The files of the product and of what the tests share."""
    names = ("params.yaml", "dvc.yaml", "constraints.txt", "pyproject.toml")
    files = [ROOT / name for name in (*names, ".gitignore", ".dvcignore")]
    for folder in ("pipeline", "stages", "manifests", ".dvc/plots"):
        files.extend((ROOT / folder).rglob("*"))
    for file in (ROOT / "tests").glob("*.py"):
        if not file.name.startswith("test_"):
            files.append(file)
    return files


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        if file.is_file() and "__pycache__" not in file.parts:
            content = file.read_bytes()
            digest.update(f"{file.relative_to(ROOT)} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


_AT_START = _digest(_code())

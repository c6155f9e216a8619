"""Read results with a clear refusal, and replace a folder of results completely or not at all."""

import os
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.foundation.files import atomic, parsing, regular
from pipeline.foundation.parts.errors import InputError, refusing


def read_json(path: Path, command: str) -> dict[str, Any]:
    """Read a JSON file that holds an object; otherwise an InputError names the command that makes
    the file.
    """
    with (
        refusing(OSError, lambda error: f"{path}: cannot be read ({error.strerror or error})"),
        refusing(FileNotFoundError, f"{path}: missing; make it with `pipeline {command}`"),
        refusing(ValueError, f"{path}: not JSON; make it again with `pipeline {command}`"),
    ):
        tree = parsing.from_json(regular.text(path))
        if not isinstance(tree, dict):
            raise ValueError
        return tree


@contextmanager
def updating(folder: Path, names: Collection[str]) -> Iterator[Path]:
    """Replace a folder's files NAME.pdf, NAME.tex, … at once by what the block writes into the
    yielded folder.
    """
    links = [entry for entry in folder.glob("*") if entry.is_symlink()]
    for entry in folder.glob("*"):
        if not (entry in links or entry.is_file() or entry.is_dir()):
            raise InputError(f"{entry}: is no regular file; move it to another folder")
    with atomic.creating(folder) as making:
        for entry in folder.glob("*"):
            if entry in links:
                continue
            if entry.is_dir():
                shutil.copytree(entry, making / entry.name, symlinks=True)
            elif entry.stem not in names:
                shutil.copy2(entry, making)
        yield making
        for link in links:
            _keep_link(link, making / link.name, link.stem in names)


def _keep_link(link: Path, made: Path, is_result: bool) -> None:
    """Put a folder's link into its successor; the new file of its name takes its target's place."""
    if made.exists():
        atomic.write_bytes(link, made.read_bytes(), durable=False)
        made.unlink()
    elif is_result:  # there is no new one
        return
    made.symlink_to(os.readlink(link))


def texts(folder: Path, names: Iterable[str], ending: str) -> list[str]:
    """Read those of several text files NAME.ENDING of a folder that exist, in the order of the
    names.
    """
    files = (folder / f"{name}.{ending}" for name in names)
    return [file.read_text(encoding="utf-8") for file in files if file.exists()]

"""What two folders have in common."""

from __future__ import annotations

from pathlib import Path


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by relative name: what two equal stores have in common.

    But remembered digests: whether they are there depends on how old their files are.
    """
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != "digests.json"
    }

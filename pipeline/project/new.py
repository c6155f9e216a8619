"""Write the files that a project starts with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipeline.errors import InputError
from pipeline.files.atomic import write_text
from pipeline.project import templates

KEPT = (".gitignore", ".dvcignore")
"""Files that a folder may have already, and keeps."""
DVC = {"config": "[core]\n    analytics = false\n    check_update = false\n",
       ".gitignore": "/config.local\n/tmp\n/cache\n"}
WITHOUT_GIT = "    no_scm = true\n"


def write(folder: Path, changed: Mapping[str, str] | None = None) -> list[Path]:
    """Write settings, stages and DVC's own folder, so that `dvc repro` runs there.

    Args:
        folder: Where; it is made if it is not there.
        changed: Files by name that are written otherwise than they are shipped.

    Returns:
        The files that were written. Ignore files and a `.dvc` that are there stay as they are.

    Raises:
        InputError: If the folder has settings or stages already, or is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder")
    shipped = {name: templates.path(name).read_text(encoding="utf-8") for name in templates.SHIPPED}
    wanted = shipped | dict(changed or {})
    if taken := [name for name in wanted if name not in KEPT and (folder / name).exists()]:
        raise InputError(f"{folder}: has {' and '.join(taken)} already, which stay as they are; choose another folder, "
                         "or move them away")
    if not (folder / ".dvc").exists():
        config = DVC["config"] + ("" if _in_git(folder) else WITHOUT_GIT)
        wanted |= {".dvc/config": config, ".dvc/.gitignore": DVC[".gitignore"]}
    written = [folder / name for name in wanted if not (folder / name).exists()]
    for file in written:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, wanted[file.relative_to(folder).as_posix()])
    return written


def _in_git(folder: Path) -> bool:
    place = folder.absolute()
    return any((each / ".git").exists() for each in (place, *place.parents))

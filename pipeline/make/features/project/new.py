"""The files that a project starts with."""

import os
from collections.abc import Mapping
from pathlib import Path

from pipeline.foundation.files.atomic import write_bytes, write_text
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.written import TEMPLATES, template

# Files that a folder may have already, and keeps.
KEPT = (".gitignore", ".dvcignore", ".dvc/plots/curves_of_heads.json")
# The one of them to which missing lines are added: `dvc init` makes one without any.
ADDED_TO = ".dvcignore"
DVC = {
    "config": "[core]\n    analytics = false\n    check_update = false\n",
    ".gitignore": "/config.local\n/tmp\n/cache\n",
}
WITHOUT_GIT = "    no_scm = true\n"


def write(
    folder: Path, changed: Mapping[str, str] | None = None, links: Mapping[str, Path] | None = None
) -> list[str]:
    """Write settings, stages and DVC's own folder, so that `dvc repro` runs there."""
    for place in (folder, *folder.parents):
        if place.is_file():
            raise InputError(f"{place}: is a file; name a folder")
    wanted = {name: template(name).read_text(encoding="utf-8") for name in TEMPLATES}
    wanted |= changed or {}
    links = links or {}
    replaced = [name for name in (*wanted, *links) if name not in KEPT]
    taken = [name for name in replaced if os.path.lexists(folder / name)]
    if taken:
        raise InputError(
            f"{folder}: has {' and '.join(taken)} already; nothing is overwritten; choose another "
            "folder, or move them away"
        )
    if not (folder / ".dvc").exists():
        wanted |= {".dvc/config": _config(folder), ".dvc/.gitignore": DVC[".gitignore"]}
    written = [name for name in wanted if not (folder / name).exists()]
    for name in (*written, *links):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    if ADDED_TO not in written:
        file = folder / ADDED_TO
        lacking = _lacking(file, wanted[ADDED_TO])
        if lacking:
            write_bytes(file, file.read_bytes() + lacking.encode())
    for name in written:
        write_text(folder / name, wanted[name])
    for name, target in links.items():
        (folder / name).symlink_to(target.absolute())
    return [*written, *links]


def _config(folder: Path) -> str:
    """DVC's settings in a folder."""
    place = folder.resolve()  # from a clone, ../mine is not below it
    if any((parent / ".git").exists() for parent in (place, *place.parents)):
        return DVC["config"]
    return DVC["config"] + WITHOUT_GIT


def is_without_git(folder: Path) -> bool:
    """Whether DVC's settings in a folder say that there is no git."""
    config = folder / ".dvc" / "config"
    return config.is_file() and WITHOUT_GIT in config.read_text(encoding="utf-8")


def _lacking(file: Path, wanted: str) -> str:
    """The lines that a file lacks, to be added at its end; "" for none. Its line ends may be of any
    kind.
    """
    content = file.read_bytes()
    existing = content.decode(errors="replace").splitlines()
    lines = [f"{line}\n" for line in wanted.splitlines() if line not in existing]
    if lines and content and not content.endswith(b"\n"):
        lines.insert(0, "\n")
    return "".join(lines)

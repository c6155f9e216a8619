"""The files that a project starts with."""

import os
from collections.abc import Mapping
from pathlib import Path

from pipeline.files.atomic import write_bytes, write_text
from pipeline.parts.errors import InputError

# The files that a project starts with. In a clone they are those at its root; a wheel carries
# copies of them. File -> its name beside this module in an installed copy, where `pyproject.toml`
# puts it.
SHIPPED = {
    "params.yaml": "params.yaml",
    "dvc.yaml": "dvc.yaml",
    ".gitignore": "gitignore",
    ".dvcignore": "dvcignore",
    ".dvc/plots/curves_of_heads.json": "curves_of_heads.json",
}


def path(name: str) -> Path:
    """Find a shipped file."""
    installed = Path(__file__).parent / "templates" / SHIPPED[name]
    return installed if installed.is_file() else Path(__file__).parents[3] / name


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
    if file := next((place for place in (folder, *folder.parents) if place.is_file()), None):
        raise InputError(f"{file}: is a file; name a folder")
    shipped = {name: path(name).read_text(encoding="utf-8") for name in SHIPPED}
    wanted, links = shipped | dict(changed or {}), links or {}
    if taken := [
        name for name in (*wanted, *links) if name not in KEPT and os.path.lexists(folder / name)
    ]:
        raise InputError(
            f"{folder}: has {' and '.join(taken)} already; nothing is overwritten; choose another "
            "folder, or move them away"
        )
    if not (folder / ".dvc").exists():
        place = folder.resolve()  # from a clone, ../mine is not below it
        in_git = any((each / ".git").exists() for each in (place, *place.parents))
        wanted |= {
            ".dvc/config": DVC["config"] + ("" if in_git else WITHOUT_GIT),
            ".dvc/.gitignore": DVC[".gitignore"],
        }
    written = [name for name in wanted if not (folder / name).exists()]
    for name in (*written, *links):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    if ADDED_TO not in written and (lacking := _lacking(folder / ADDED_TO, wanted[ADDED_TO])):
        write_bytes(folder / ADDED_TO, (folder / ADDED_TO).read_bytes() + lacking.encode())
    for name in written:
        write_text(folder / name, wanted[name])
    for name, target in links.items():
        (folder / name).symlink_to(target.absolute())
    return [*written, *links]


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
    lines = [line for line in wanted.splitlines() if line not in existing]
    begin = "" if not content or content.endswith(b"\n") else "\n"
    return begin + "".join(f"{line}\n" for line in lines) if lines else ""

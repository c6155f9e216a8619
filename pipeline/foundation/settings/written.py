"""Settings as they are written: the YAML files of a user, and those that ship."""

from copy import deepcopy
from functools import cache, lru_cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pipeline.foundation.files import regular
from pipeline.foundation.files.parsing import LARGEST, from_yaml
from pipeline.foundation.parts import extension
from pipeline.foundation.parts.errors import InputError, refusing

SHIPPED = Path(__file__).parent / "defaults.yaml"
# The sections that the shipped file lacks: what is run; recipes, which have files of their own.
BESIDE = {"run", "recipes"}
# The files that a project starts with. In a clone they are those at its root; a wheel carries
# copies of them. File -> its name in the folder `templates` of an installed copy, where
# `pyproject.toml` puts it.
TEMPLATES = {
    "params.yaml": "params.yaml",
    "dvc.yaml": "dvc.yaml",
    ".gitignore": "gitignore",
    ".dvcignore": "dvcignore",
    ".dvc/plots/curves_of_heads.json": "curves_of_heads.json",
}
LARGEST_YAML = 4 * LARGEST  # bytes of as many characters as are read


@cache
def shipped() -> dict[str, Any]:
    """The sections that ship."""
    sections: dict[str, Any] = from_yaml(SHIPPED.read_text(encoding="utf-8"))
    return sections


def recipes_of_extensions() -> set[str]:
    """The names of the recipes that extensions bring."""
    names = set()
    for file in extension.files(SHIPPED.name):
        names |= yaml_of(file).get("recipes", {}).keys()
    return names


def template(name: str) -> Path:
    """Find a file that a project starts with, a key of `TEMPLATES`."""
    installed = Path(__file__).parent / "templates" / TEMPLATES[name]
    if installed.is_file():
        return installed
    return Path(__file__).parents[3] / name


def sections_of(path: Path) -> dict[Any, Any]:
    """The sections of a settings file, unchecked; InputError for a file that has none."""
    with refusing(
        (FileNotFoundError, NotADirectoryError),
        f"{path}: no such settings file; `pipeline init` writes one, or name another with --params",
    ):
        sections = yaml_of(path)
    if not isinstance(sections, dict):
        raise InputError(f"{path}: has no sections; `pipeline init` writes a settings file")
    return sections


def yaml_of(file: Traversable) -> Any:
    """What a YAML file holds."""
    with refusing(ValueError, lambda error: f"{file}: not readable as YAML: {error}"):
        if isinstance(file, Path):
            if file.stat().st_size > LARGEST_YAML:
                raise ValueError(f"has more than {LARGEST_YAML:,} bytes")
            return deepcopy(_parsed(_text_of(file)))
        return deepcopy(_parsed(file.read_text(encoding="utf-8")))


# In a clone the project's own recipes are those that ship: each file is parsed once.
@lru_cache(maxsize=128)
def _parsed(text: str) -> Any:
    return from_yaml(text)


def _text_of(file: Path) -> str:
    content = regular.content(file)
    is_utf16 = regular.in_utf16(file, content)
    if is_utf16:
        raise InputError(f"{file}: {is_utf16}")
    with refusing(UnicodeDecodeError, f"{file}: {regular.unlike_utf8(file)}"):
        return content.decode("utf-8")

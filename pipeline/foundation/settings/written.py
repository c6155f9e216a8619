"""Settings as they are written: the YAML files of a user, and the one that ships."""

from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pipeline.foundation.files import regular
from pipeline.foundation.files.parsing import LARGEST, from_yaml
from pipeline.foundation.parts.errors import InputError, refusing

SHIPPED = Path(__file__).parent / "defaults.yaml"
# The sections that the shipped file lacks: what is run; recipes, which have files of their own.
BESIDE = {"run", "recipes"}
LARGEST_YAML = 4 * LARGEST  # bytes of as many characters as are read


@cache
def shipped() -> dict[str, Any]:
    """The sections that ship."""
    sections: dict[str, Any] = from_yaml(SHIPPED.read_text(encoding="utf-8"))
    return sections


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
            return from_yaml(_text_of(file))
        return from_yaml(file.read_text(encoding="utf-8"))


def _text_of(file: Path) -> str:
    content = regular.content(file)
    is_utf16 = regular.in_utf16(file, content)
    if is_utf16:
        raise InputError(f"{file}: {is_utf16}")
    with refusing(UnicodeDecodeError, f"{file}: {regular.unlike_utf8(file)}"):
        return content.decode("utf-8")

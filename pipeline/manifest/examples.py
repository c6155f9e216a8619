"""Small examples of annotations in every layout that is read, with what is read of them, from
examples.yaml.

The tests read each of them; so what is shown to users is what works.
"""

import gzip
import io
import json
import shlex
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from pipeline.files import atomic
from pipeline.files.parsing import from_yaml
from pipeline.parts.errors import InputError

Row = tuple[str, str, str]  # file, split, caption


@dataclass(frozen=True)
class Example:
    """Annotations, and what is read of them."""

    title: str  # What they are
    files: Mapping[str, str | bytes]  # Path below a folder -> content
    rows: list[Row]  # What is read: file, split and caption of each
    annotations: str = ""  # The path of the annotations; "" for the folder
    images: str = "images"  # The path of the images' folder
    left_out: Mapping[str, int] = field(
        default_factory=dict
    )  # Why captions are left out -> how many
    said: str = ""  # A part of what is said when it is recognised, or of a note

    def write(self, folder: Path) -> None:
        """Write the files below a folder."""
        for path, content in self.files.items():
            atomic.write_bytes(folder / path, bytes_of(content), durable=False)

    def options(self, folder: Path) -> list[str]:
        """The options of `pipeline manifest` that read it, written below a folder; quoted for a
        shell.
        """
        paths = {"--images": folder / self.images, "--annotations": folder / self.annotations}
        return [
            word for option, place in paths.items() for word in (option, shlex.quote(str(place)))
        ]


def picture(shade: int = 128, form: str = "JPEG") -> bytes:
    """An image of a few pixels."""
    from PIL import Image

    stream = io.BytesIO()
    Image.new("RGB", (16, 16), (shade, 128, 255 - shade)).save(stream, form)
    return stream.getvalue()


def table(columns: Mapping[str, list[Any]]) -> bytes:
    """A Parquet file of columns."""
    import pyarrow as pa
    from pyarrow import parquet

    stream = io.BytesIO()
    parquet.write_table(pa.table(dict(columns)), stream)
    return stream.getvalue()


def tar(files: Mapping[str, str | bytes]) -> bytes:
    """A tar of files."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as members:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(packed := bytes_of(content))
            members.addfile(info, io.BytesIO(packed))
    return stream.getvalue()


def bytes_of(content: str | bytes) -> bytes:
    """The bytes of a file."""
    return content.encode() if isinstance(content, str) else content


def as_json(value: Any) -> str:
    """A JSON file."""
    return json.dumps(value, indent=1, ensure_ascii=False)


def as_lines(*values: Any) -> str:
    """A file of JSON Lines."""
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


# How examples.yaml says what a content is, where that is no text -> what makes it of the value.
KINDS: dict[str, Callable[[Any], Any]] = {
    "a picture": picture,
    "a table": table,
    "a tar": tar,
    "as JSON": as_json,
    "as JSON Lines": lambda values: as_lines(*values),
    "as UTF-16": lambda text: text.encode("utf-16"),
    "as gzip": lambda text: gzip.compress(text.encode(), mtime=0),
}


def _made(value: Any) -> Any:
    """A value of examples.yaml with the contents that it describes."""
    if isinstance(value, list):
        return [*map(_made, value)]
    if not isinstance(value, dict):
        return value
    made = {key: _made(part) for key, part in value.items()}
    kind = next(iter(made), "")
    return KINDS[kind](made[kind]) if kind in KINDS else made


def read_all() -> dict[str, Example]:
    """Read all examples: name -> example of a layout."""
    text = (resources.files("pipeline.manifest") / "examples.yaml").read_text(encoding="utf-8")
    return {
        name: Example(**_made(entry) | {"rows": [*map(tuple, entry["rows"])]})
        for name, entry in from_yaml(text).items()
    }


def write_all(folder: Path) -> list[str]:
    """Write all examples into an empty folder; a line on each with the command that reads it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists and is not empty; name another folder for the examples")
    lines = []
    for name, example in read_all().items():
        example.write(folder / name)
        lines += [
            f"{example.title}:",
            f"  pipeline manifest example-{name} {' '.join(example.options(folder / name))}",
        ]
    return lines

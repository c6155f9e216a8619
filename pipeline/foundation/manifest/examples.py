"""Small examples of annotations in every layout that is read, with what is read of them, from
examples.yaml here and in the folders of extensions.

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

from pipeline.foundation.files import atomic
from pipeline.foundation.files.gallery_file import Kind
from pipeline.foundation.files.parsing import from_yaml
from pipeline.foundation.parts import extension
from pipeline.foundation.parts.errors import InputError

NAME = "examples.yaml"
Row = tuple[str, str, str]  # file, split, caption


@dataclass(frozen=True)
class Example:
    """Annotations, and what is read of them."""

    title: str  # What they are
    files: Mapping[str, str | bytes]  # Path below a folder -> content
    rows: list[Row]  # What is read: file, split and caption of each
    annotations: str = ""  # The path of the annotations; "" for the folder
    images: str = "images"  # The path of the images' or clips' folder
    kind: Kind = "image"  # What is in it
    # Why captions are left out -> how many
    left_out: Mapping[str, int] = field(default_factory=dict)
    said: str = ""  # A part of what is said when it is recognised, or of a note

    def write(self, folder: Path) -> None:
        """Write the files below a folder."""
        for path, content in self.files.items():
            atomic.write_bytes(folder / path, bytes_of(content), durable=False)

    def options(self, folder: Path) -> list[str]:
        """The options of `pipeline manifest` that read it, written below a folder; quoted for a
        shell.
        """
        images = shlex.quote(str(folder / self.images))
        annotations = shlex.quote(str(folder / self.annotations))
        return [f"--{self.kind}s", images, "--annotations", annotations]


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


def array(values: list[Any]) -> bytes:
    """An array of NumPy's."""
    import numpy as np

    stream = io.BytesIO()
    np.save(stream, np.array(values))
    return stream.getvalue()


def tar(files: Mapping[str, str | bytes]) -> bytes:
    """A tar of files."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as members:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            member = bytes_of(content)
            info.size = len(member)
            members.addfile(info, io.BytesIO(member))
    return stream.getvalue()


def bytes_of(content: str | bytes) -> bytes:
    """The bytes of a file."""
    if isinstance(content, str):
        return content.encode()
    return content


def as_json(value: Any) -> str:
    """A JSON file."""
    return json.dumps(value, indent=1, ensure_ascii=False)


def as_lines(*values: Any) -> str:
    """A file of JSON Lines."""
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


# How examples.yaml says what a content is, where that is no text -> what makes it of the value.
KINDS: dict[str, Callable[[Any], Any]] = {
    "a picture": picture,
    "an array": array,
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
    if kind not in KINDS:
        return made
    make = KINDS[kind]
    return make(made[kind])


def read_all() -> dict[str, Example]:
    """Read all examples: name -> example of a layout."""
    of_core = resources.files("pipeline.foundation.manifest") / NAME
    examples: dict[str, Example] = {}
    for file in (of_core, *extension.files(NAME)):
        for name, entry in from_yaml(file.read_text(encoding="utf-8")).items():
            fields = _made(entry)
            fields["rows"] = [tuple(row) for row in entry["rows"]]
            examples[name] = Example(**fields)
    return examples


def write_all(folder: Path) -> list[str]:
    """Write all examples into an empty folder; a line on each with the command that reads it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists and is not empty; name another folder for the examples")
    lines = []
    for name, example in read_all().items():
        example.write(folder / name)
        options = " ".join(example.options(folder / name))
        lines.append(f"{example.title}:")
        lines.append(f"  pipeline manifest example-{name} {options}")
    return lines

"""The page of formats, docs/formats.md, from the examples that the package and the tests read.

python tests/docs/formats.py
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from other_inputs import INPUTS, SCORES, Input
from pyarrow import parquet

from pipeline.foundation.files.atomic import write_text
from pipeline.foundation.manifest.examples import Example, read_all

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
LINES, WIDTH = 3, 80
HEAD = """# Every input

Each kind of file that the pipeline reads, with the first lines of an example, long ones cut off. The tests read these
very examples, and this page is made from them (`python tests/docs/formats.py`). A kind that does not say what reads it
is read like the one above it.

```sh
pipeline manifest --examples examples
```

writes the annotations of the first part into the new folder `examples`, with images, and prints the command that reads
each. [Clips](video.md) and [formats of images](own-data.md#formats-of-images) have pages of their own.
"""

SCORE_FILES = (Path(__file__).parent / "score_files.md").read_text(encoding="utf-8")


def page() -> str:
    """The page's text."""
    parts = [HEAD, "## Annotations\n", *map(_annotations, read_all().values())]
    for title, inputs in ((SCORE_FILES, SCORES), ("## Other files\n", INPUTS)):
        parts.append(title)
        said = ""
        for number, each in enumerate(inputs):
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder, str(number))
                place.mkdir()
                parts.append(_other(each, place, each.command != said))
            said = each.command
    return "\n".join(parts)


def _annotations(example: Example) -> str:
    files = [
        (path, content)
        for path, content in example.files.items()
        if not bytes_begin(content, b"\xff\xd8")
    ]
    return f"### {example.title}\n\n" + "\n".join(
        _block(path, _lines(path, content)) for path, content in files[:2]
    )


def _other(made: Input, folder: Path, says_command: bool) -> str:
    file = made.write(folder)
    content: Any = file.read_bytes()
    if file.suffix in {".npy", ".npz", ".pth"}:
        content = _arrays(file)
    head = f"### {made.title}\n\n"
    if says_command:
        head += f"Read by {made.command}.\n\n"
    return head + _block(file.relative_to(folder).as_posix(), _lines(file.name, content))


def _block(name: str, lines: Iterable[str]) -> str:
    return f"`{name}`\n\n```text\n" + "".join(f"{line}\n" for line in lines) + "```\n"


def _lines(name: str, content: Any) -> list[str]:
    """The first lines of a file, or of what it holds where it is no text."""
    if bytes_begin(content, b"PAR1"):
        columns = parquet.read_table(io.BytesIO(content)).to_pydict()
        rows = zip(*columns.values(), strict=True)
        lines = [
            ", ".join(columns),
            *(json.dumps(row, ensure_ascii=False, default=_image) for row in rows),
        ]
    elif name.endswith(".tar"):
        with tarfile.open(fileobj=io.BytesIO(content)) as members:
            lines = members.getnames()
    elif bytes_begin(content, b"\x93NUMPY"):
        array = np.load(io.BytesIO(content), allow_pickle=False)
        lines = [f"{array.dtype} {list(array.shape)}: {array.tolist()}"]
    else:
        text = content if isinstance(content, str) else _decoded(content)
        lines = text.splitlines()
        if name.endswith(".json") and len(lines) > 1:
            lines = _of_json(text)
    return [line if len(line) <= WIDTH else line[:WIDTH] + " …" for line in lines[:LINES]]


def _decoded(content: bytes) -> str:
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    return content.decode("utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8")


def _of_json(text: str) -> list[str]:
    """JSON with an entry of the outermost list or object on a line."""
    value = json.loads(text)
    if isinstance(value, list):
        return [
            "[" + json.dumps(value[0], ensure_ascii=False),
            *(json.dumps(each, ensure_ascii=False) for each in value[1:]),
        ]
    return [
        f"{'' if number else '{'}{json.dumps(key)}: {json.dumps(each, ensure_ascii=False)}"
        for number, (key, each) in enumerate(value.items())
    ]


def bytes_begin(content: str | bytes, mark: bytes) -> bool:
    return isinstance(content, bytes) and content.startswith(mark)


def _image(value: object) -> str:
    assert isinstance(value, bytes)
    return "(an image's bytes)"


def _arrays(file: Path) -> str:
    if file.suffix == ".pth":
        maps = torch.load(file, weights_only=True)
        return f"{file.name}: {maps.dtype} {list(maps.shape)}\n"
    loaded = np.load(file, allow_pickle=False)
    arrays = (
        {file.name: loaded}
        if isinstance(loaded, np.ndarray)
        else {name: loaded[name] for name in loaded.files if name != "info"}
    )
    return "".join(f"{name}: {array.dtype} {list(array.shape)}\n" for name, array in arrays.items())


if __name__ == "__main__":
    write_text(PAGE, page())

"""Images and captions in WebDataset's tars or in Parquet, as img2dataset writes them: a folder of such files, or one.

An image's captions are the lines of its .txt, or else `caption` or `captions` of its .json; in Parquet the column
`caption`, `captions` or `text`. Where Parquet has no images, a column `url` names files below the image folder, or
addresses, see fetch.py.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from pipeline.files import containers, parsing, remote
from pipeline.manifest.reader import Reader, table_of
from pipeline.parts.errors import InputError

IMAGE_SUFFIXES = {".jpg", ".jpeg", ".png", ".webp"}
CAPTIONS = ("captions", "caption", "text")
ADDRESSES = ("url", "URL", "image_url")
KEY = "key"  # img2dataset's number of an image
Found = tuple[str, str | None, str | None, list[str]]  # file, key, split, captions


def recognises(path: Path) -> bool:
    """Whether a path is a tar or Parquet file, or a folder that holds such files."""
    return bool(_files(path))


def _files(path: Path) -> list[str]:
    """The names of tar and Parquet files in a folder; "" for the path itself if it is such a file."""
    if path.suffix.lower() in containers.SUFFIXES:
        return [""] if remote.address(path) or path.is_file() else []
    if remote.address(path):
        names = [name for name in remote.listed(path) if "/" not in name]
    else:
        names = sorted(each.name for each in path.iterdir()) if path.is_dir() else []
    return [name for name in names if name.lower().endswith(containers.SUFFIXES)]


def read(path: Path) -> pd.DataFrame:
    """Read tars or Parquet."""
    found: list[Found] = []
    for name in _files(path):
        place = path / name if name else path
        try:
            container = containers.opened(place)
            found += (_of_parquet if isinstance(container, containers.Parquet) else _of_tar)(container, place)
        except (OSError, ValueError) as error:
            told = str(error)
            raise InputError(told if told.startswith(str(place)) else f"{place}: {told}") from None
    silent = [file for file, _, _, captions in found if not captions]
    if silent:
        raise InputError(f"{path}: {len(silent)} of {len(found)} images have no caption, the first {silent[0]}")
    keys = [key for _, key, _, _ in found if key is not None and key.isdecimal() and len(key) < 19]
    numbers = list(map(int, keys)) if len({*map(int, keys)}) == len(found) else list(range(len(found)))
    table = table_of((number, file, split, captions)
                     for number, (file, _, split, captions) in zip(numbers, found, strict=True))
    return table if len(table) and table["split"].notna().all() else table.drop(columns="split")


def _of_tar(container: containers.Container, place: Path) -> Iterator[Found]:
    members: dict[str, dict[str, str]] = {}
    for name in container.sizes():
        path = PurePosixPath(name)
        members.setdefault(path.with_suffix("").as_posix(), {})[path.suffix.lower()] = name
    for stem, parts in members.items():
        images = [parts[suffix] for suffix in parts if suffix in IMAGE_SUFFIXES]
        if not images:
            continue
        if len(images) > 1:
            raise ValueError(f"{images[0]!a} and {images[1]!a} are two images of one name; rename one")
        image = images[0]
        told = parsing.from_json(container.read(parts[".json"])) if ".json" in parts else {}
        told = told if isinstance(told, dict) else {}
        captions = _captions(container.read(parts[".txt"]).decode("utf-8") if ".txt" in parts
                             else next((told[name] for name in CAPTIONS if told.get(name)), None))
        yield f"{place.name}/{image}", PurePosixPath(stem).name, _split(told), captions


def _of_parquet(container: containers.Container, place: Path) -> Iterator[Found]:
    assert isinstance(container, containers.Parquet)
    where = next((name for name in ADDRESSES if name in container.columns), None)
    if container.column is None and where is None:
        raise InputError(f"{place}: expected images' bytes in a column {', '.join(containers.IMAGE_COLUMNS)}, or their "
                         f"addresses in a column {', '.join(ADDRESSES)}; it has {', '.join(container.columns)}")
    by_address = where if container.column is None else None
    texts = container.texts([name for name in (KEY, "split", *CAPTIONS, by_address) if name in container.columns])
    # Rows without an image or an address are left out: img2dataset could not fetch these images.
    rows = [int(name) for name in container.sizes()] if by_address is None else \
        [number for number, file in enumerate(texts[by_address]) if file is not None]
    for number in rows:
        row = {column: values[number] for column, values in texts.items()}
        captions = _captions(next((row[column] for column in CAPTIONS if row.get(column)), None))
        if by_address is not None:
            yield str(row[by_address]), None, _split(row), captions
        else:
            yield f"{place.name}/{number}", None if row.get(KEY) is None else str(row[KEY]), _split(row), captions


def _captions(value: Any) -> list[str]:
    lines = value.splitlines() if isinstance(value, str) else value if isinstance(value, list) else []
    found = [line.strip() for line in lines if isinstance(line, str) and line.strip()]
    for line in found:
        line.encode()  # JSON can spell half of a surrogate pair, which is a ValueError here
    return found


def _split(told: dict[str, Any]) -> str | None:
    value = told.get("split")
    return value if isinstance(value, str) else None


READER = Reader("a folder of .tar or .parquet files with images and captions", recognises, read)

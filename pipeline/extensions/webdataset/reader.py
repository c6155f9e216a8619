"""Images with their captions beside them: WebDataset's tars, img2dataset's tars and folders,
folders of image and text.

Files of one name but for the suffix belong together: 000000042.jpg, .txt and .json. Where an image
has none, so do those of WebDataset's key, the name up to its first dot: s1.input.jpg and
s1.outputs.txt. An image's captions are the lines of its .txt, or else those of its .json.
img2dataset writes 00000.tar, or the folder 00000, and beside it 00000.parquet, which says which
images could not be fetched, and 00000_stats.json. The folder is also that of the images.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from pipeline.foundation.files import containers, parsing, remote, unfetched
from pipeline.foundation.files.gallery_file import IMAGE_SUFFIXES
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest.image_files import is_of_folder
from pipeline.foundation.manifest.reader import Reader, Source, table_of
from pipeline.foundation.manifest.rows import cells
from pipeline.foundation.manifest.rows.columns import find
from pipeline.foundation.manifest.rows.reader import NOT_FETCHED
from pipeline.foundation.manifest.split_names import split_of
from pipeline.foundation.parts.errors import InputError, refusing

TEXTS = (".txt", ".caption")  # of captions, a line each
LOOKED_AT = 1000  # files of a folder by which it is recognised
LARGEST_TEXT = 1 << 24  # bytes of captions
Sample = tuple[str, str, str | None, list[str]]  # file, key, split, captions


@dataclass(frozen=True)
class Shard:
    """A tar, or a folder of files."""

    path: Path
    name: str  # what the names of its files begin with
    files: Iterable[str]
    read: Callable[[str], bytes]

    @property
    def sidecar(self) -> Path:
        """img2dataset's table of what was to be fetched."""
        return self.path.with_name(f"{self.path.name.removesuffix('.tar')}.parquet")


def recognises(path: Path) -> bool:
    """Whether a path is a tar, or a folder of tars or of images with texts beside them."""
    if path.suffix.lower() == ".tar" or remote.address(path):
        return bool(_tars(path))
    return path.is_dir() and (bool(_tars(path)) or bool(_folders(path)) or _has_pairs(path))


def _tars(path: Path) -> list[Path]:
    if path.suffix.lower() == ".tar":
        return [path] if remote.address(path) or path.is_file() else []
    if remote.address(path):
        names = [name for name in remote.listed(path) if "/" not in name]
    else:
        names = [file.name for file in path.iterdir()] if path.is_dir() else []
    visible = [name for name in sorted(names) if not name.startswith(".")]
    return [path / name for name in visible if name.lower().endswith(".tar")]


def _folders(path: Path) -> list[Path]:
    """img2dataset's folders: those with a table of their name."""
    tables = sorted(path.glob("*.parquet"))
    folders = [file.with_suffix("") for file in tables]
    return [folder for folder in folders if folder.is_dir()]


def _has_pairs(folder: Path) -> bool:
    images: set[str] = set()
    texts: set[str] = set()
    for file in islice(os.scandir(folder), LOOKED_AT):
        stem, suffix = os.path.splitext(file.name)
        if file.name.startswith("."):
            continue
        if suffix.lower() in IMAGE_SUFFIXES:
            images.add(stem)
        elif suffix.lower() in TEXTS:
            texts.add(stem)
    return not images.isdisjoint(texts)


def _shards(path: Path) -> Iterator[Shard]:
    tars = _tars(path)
    for tar in tars:
        with refusing((OSError, ValueError), partial(_about, tar)):
            opened = containers.opened(tar)
        yield Shard(tar, tar.name, opened.sizes(), opened.read)
    if tars:
        return
    for folder in _folders(path) or [path]:
        name = "" if folder == path else folder.name
        yield Shard(folder, name, _files_below(folder), _reading(folder))


def _files_below(folder: Path) -> list[str]:
    """The files below a folder in order, without hidden ones and those that macOS adds."""
    files = []
    for file in folder.rglob("*"):
        below = file.relative_to(folder)
        is_hidden = any(part.startswith((".", "__MACOSX")) for part in below.parts)
        if not is_hidden and file.is_file():
            files.append(below.as_posix())
    return sorted(files)


def _reading(folder: Path) -> Callable[[str], bytes]:
    def read(name: str) -> bytes:
        file = folder / name
        is_inside = is_of_folder(file.resolve(), folder.resolve())
        if not is_inside or file.stat().st_size > LARGEST_TEXT:
            raise OSError("leaves the folder, or is too large for captions")
        return file.read_bytes()

    return read


def _about(place: Path, error: Exception) -> str:
    message = str(error)
    if message.startswith(str(place)):
        return message
    return f"{place}: {message}"


def read(source: Source) -> pd.DataFrame:
    """Read tars or folders."""
    path = source.path
    shards: Iterable[Shard] = _shards(path)
    if path.is_dir() and not _tars(path):
        shards = list(shards)
    source.say(f"{path}: read as {_title(path)}")
    samples: list[Sample] = []
    for shard in shards:
        samples += _samples(shard, source.left_out)
        _note_failures(shard, source.left_out)
    if not samples:
        source.left_out.check(sum(source.left_out.counts.values()))
        raise InputError(
            f"{path}: holds no image with a caption of its name, such as 1.jpg and 1.txt"
        )
    table = table_of(
        (number, file, split, captions)
        for number, (file, _, split, captions) in zip(_numbers(samples), samples, strict=True)
    )
    if len(table) and table["split"].notna().all():
        return table
    return table.drop(columns="split")


def _numbers(samples: Sequence[Sample]) -> Sequence[int]:
    """The samples' keys where they are different numbers, else their places."""
    keys = [key for _, key, _, _ in samples if key.isdecimal() and len(key) < 19]
    numbers = list(map(int, keys))
    if len({*numbers}) == len(samples):
        return numbers
    return range(len(samples))


def _title(path: Path) -> str:
    tars = _tars(path)
    if remote.address(path):
        return "WebDataset's tars"
    if not tars and _folders(path):
        return "img2dataset's folders with images and texts"
    if not tars:
        return "images with a text beside each"
    tables = [tar.with_suffix(".parquet") for tar in tars]
    statistics = [tar.with_name(f"{tar.stem}_stats.json") for tar in tars]
    is_by_img2dataset = any(file.is_file() for file in (*tables, *statistics))
    title = "img2dataset's tars" if is_by_img2dataset else "WebDataset's tars"
    if not path.is_dir():
        return title
    all_tables = sorted(path.glob("*.parquet"))
    unread = [file.name for file in all_tables if not file.with_suffix(".tar").is_file()]
    if unread:
        title += f"; not read: {', '.join(unread)[:100]}"
    return title


def _samples(shard: Shard, left_out: LeftOut) -> Iterator[Sample]:
    members: dict[str, dict[str, list[str]]] = {}
    by_key: dict[str, list[str]] = {}  # WebDataset's key -> names without their last suffix
    for name in shard.files:
        path = PurePosixPath(name)
        if not path.name.startswith("."):
            stem = path.with_suffix("").as_posix()
            by_key.setdefault(_key(stem), []).append(stem)
            members.setdefault(stem, {}).setdefault(path.suffix.lower(), []).append(name)
    for stem, parts in _by_keys(members, by_key).items():
        of_suffixes = [names for suffix, names in parts.items() if suffix in IMAGE_SUFFIXES]
        images = [*chain.from_iterable(of_suffixes)]
        if not images:
            continue
        where = f"{shard.path}, {images[0]}"
        if len(images) > 1:
            left_out.add("two images of one name", f"{where} and {images[1]}")
            continue
        several = [suffix for suffix in TEXTS if len(parts.get(suffix, ())) > 1]
        if several:
            texts = " and ".join(parts[several[0]][:2])
            left_out.add("two texts of one image", f"{where}: {texts}")
            continue
        first_of_suffix = {suffix: names[0] for suffix, names in parts.items()}
        try:
            split, captions = _described(shard, first_of_suffix)
        except UnicodeDecodeError as error:
            left_out.add("not UTF-8", f"{where}: {error}")
            continue
        except (ValueError, OSError) as error:
            left_out.add("damaged row", f"{where}: {error}")
            continue
        if not captions:
            left_out.add("no caption", where)
            continue
        file = f"{shard.name}/{images[0]}" if shard.name else images[0]
        yield file, PurePosixPath(stem).name, split, captions


def _key(stem: str) -> str:
    """WebDataset's key of a sample: the path up to the first dot in its last part."""
    folder, slash, name = stem.rpartition("/")
    return f"{folder}{slash}{name.partition('.')[0]}"


def _by_keys(
    members: Mapping[str, dict[str, list[str]]], by_key: Mapping[str, Iterable[str]]
) -> dict[str, dict[str, list[str]]]:
    """Samples with those of one key joined, where an image of the key has no text of its own
    name.
    """
    joined: dict[str, dict[str, list[str]]] = {}
    for key, stems in by_key.items():
        samples = {stem: members[stem] for stem in dict.fromkeys(stems)}
        images = [parts for parts in samples.values() if IMAGE_SUFFIXES & parts.keys()]
        if all(_has_text(parts) for parts in images):
            joined |= samples
            continue
        whole: dict[str, list[str]] = {}
        for parts in samples.values():
            for suffix, names in parts.items():
                whole.setdefault(suffix, []).extend(names)
        if _has_text(whole):
            joined[key] = whole
        else:
            joined |= samples
    return joined


def _has_text(parts: Mapping[str, list[str]]) -> bool:
    return not parts.keys().isdisjoint((*TEXTS, ".json"))


def _described(shard: Shard, parts: dict[str, str]) -> tuple[str | None, list[str]]:
    """The split and captions of a sample: the lines of its text, or else what its JSON says."""
    described: Any = {}
    if ".json" in parts:
        described = parsing.from_json(shard.read(parts[".json"]))
    if not isinstance(described, dict):
        described = {}
    captions: list[str] = []
    for suffix in TEXTS:
        if suffix in parts:
            lines = _text_of(shard, parts[suffix]).split("\n")
            captions += filter(None, map(str.strip, lines))
    if not captions:
        named = list(described)
        for column in find(named).roles.get("caption", ()):
            captions += filter(None, cells.captions_of(described[named[column]]))
    split = described.get("split")
    if not isinstance(split, str):
        return None, captions
    return split_of(split) or split, captions


def _text_of(shard: Shard, name: str) -> str:
    content = shard.read(name)
    pointer = unfetched.pointer(content)
    if pointer:
        raise ValueError(f"{name} is {pointer}")
    return content.decode("utf-8-sig")


def _note_failures(shard: Shard, left_out: LeftOut) -> None:
    """Count the images that img2dataset could not fetch."""
    if remote.address(shard.path) or not shard.sidecar.is_file():
        return
    with refusing((OSError, ValueError), partial(_about, shard.sidecar)):
        table = containers.opened(shard.sidecar)
        assert isinstance(table, containers.Parquet)
        if "status" not in table.columns:
            return
        columns = [table.columns.index(name) for name in ("status", "url") if name in table.columns]
        for batch in table.batches(columns, 1 << 16):
            for status, address in zip(batch[0], batch[-1], strict=True):
                if status != "success":
                    left_out.add(NOT_FETCHED, f"{shard.sidecar}, {address}", by_origin=True)


READER = Reader("a folder of tars, or of images, with captions beside each image", recognises, read)

"""Images with their captions beside them: WebDataset's tars, img2dataset's tars and folders,
folders of image and text.

Files of one name but for the suffix belong together: 000000042.jpg, .txt and .json. Where an image
has none, so do those of WebDataset's key, the name up to its first dot: s1.input.jpg and
s1.outputs.txt. An image's captions are the lines of its .txt, or else those of its .json.
img2dataset writes 00000.tar, or the folder 00000, and beside it 00000.parquet, which says which
images could not be fetched, and 00000_stats.json. The folder is also that of the images.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from pipeline.files import containers, parsing, remote, unfetched
from pipeline.files.gallery_file import IMAGE_SUFFIXES
from pipeline.files.left_out import LeftOut
from pipeline.manifest.image_files import is_of_folder
from pipeline.manifest.reader import Reader, Source, table_of
from pipeline.manifest.rows import cells
from pipeline.manifest.rows.columns import find
from pipeline.manifest.rows.reader import NOT_FETCHED
from pipeline.manifest.split_names import split_of
from pipeline.parts.errors import InputError, refusing

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
        names = [each.name for each in path.iterdir()] if path.is_dir() else []
    return [
        path / name
        for name in sorted(names)
        if name.lower().endswith(".tar") and not name.startswith(".")
    ]


def _folders(path: Path) -> list[Path]:
    """img2dataset's folders: those with a table of their name."""
    return [
        file.with_suffix("")
        for file in sorted(path.glob("*.parquet"))
        if file.with_suffix("").is_dir()
    ]


def _has_pairs(folder: Path) -> bool:
    stems: dict[str, set[str]] = {"image": set(), "text": set()}
    for file in islice(os.scandir(folder), LOOKED_AT):
        stem, suffix = os.path.splitext(file.name)
        if file.name.startswith("."):
            continue
        if suffix.lower() in IMAGE_SUFFIXES:
            stems["image"].add(stem)
        elif suffix.lower() in TEXTS:
            stems["text"].add(stem)
    return bool(stems["image"] & stems["text"])


def _shards(path: Path) -> Iterator[Shard]:
    for tar in _tars(path):
        with refusing((OSError, ValueError), partial(_about, tar)):
            opened = containers.opened(tar)
        yield Shard(tar, tar.name, opened.sizes(), opened.read)
    if not _tars(path):
        for folder in _folders(path) or [path]:
            name = "" if folder == path else folder.name
            files = sorted(
                file.relative_to(folder).as_posix()
                for file in folder.rglob("*")
                if file.is_file()
                and not any(
                    part.startswith((".", "__MACOSX")) for part in file.relative_to(folder).parts
                )
            )
            yield Shard(folder, name, files, _reading(folder))


def _reading(folder: Path) -> Callable[[str], bytes]:
    def read(name: str) -> bytes:
        file = folder / name
        is_inside = is_of_folder(file.resolve(), folder.resolve())
        if not is_inside or file.stat().st_size > LARGEST_TEXT:
            raise OSError("leaves the folder, or is too large for captions")
        return file.read_bytes()

    return read


def _about(place: Path, error: Exception) -> str:
    return str(error) if str(error).startswith(str(place)) else f"{place}: {error}"


def read(source: Source) -> pd.DataFrame:
    """Read tars or folders."""
    path = source.path
    shards = list(_shards(path)) if path.is_dir() and not _tars(path) else _shards(path)
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
    keys = [key for _, key, _, _ in samples if key.isdecimal() and len(key) < 19]
    numbers = (
        list(map(int, keys))
        if len({*map(int, keys)}) == len(samples)
        else list(range(len(samples)))
    )
    table = table_of(
        (number, file, split, captions)
        for number, (file, _, split, captions) in zip(numbers, samples, strict=True)
    )
    return table if len(table) and table["split"].notna().all() else table.drop(columns="split")


def _title(path: Path) -> str:
    tars = _tars(path)
    if remote.address(path):
        return "WebDataset's tars"
    if not tars:
        return (
            "img2dataset's folders with images and texts"
            if _folders(path)
            else "images with a text beside each"
        )
    by_tool = any(
        tar.with_suffix(".parquet").is_file() or tar.with_name(f"{tar.stem}_stats.json").is_file()
        for tar in tars
    )
    other = (
        [
            file.name
            for file in sorted(path.glob("*.parquet"))
            if not file.with_suffix(".tar").is_file()
        ]
        if path.is_dir()
        else []
    )
    unread = f"; not read: {', '.join(other)[:100]}" if other else ""
    return f"{'img2dataset' if by_tool else 'WebDataset'}'s tars{unread}"


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
        images = [name for suffix in parts if suffix in IMAGE_SUFFIXES for name in parts[suffix]]
        if not images:
            continue
        where = f"{shard.path}, {images[0]}"
        if len(images) > 1:
            left_out.add("two images of one name", f"{where} and {images[1]}")
            continue
        if several := [suffix for suffix in TEXTS if len(parts.get(suffix, ())) > 1]:
            names = " and ".join(parts[several[0]][:2])
            left_out.add("two texts of one image", f"{where}: {names}")
            continue
        try:
            split, captions = _described(
                shard, {suffix: names[0] for suffix, names in parts.items()}
            )
        except (ValueError, OSError) as error:  # UnicodeDecodeError is a ValueError
            left_out.add(
                "not UTF-8" if isinstance(error, UnicodeDecodeError) else "damaged row",
                f"{where}: {error}",
            )
            continue
        if captions:
            yield (
                "/".join(filter(None, [shard.name, images[0]])),
                PurePosixPath(stem).name,
                split,
                captions,
            )
        else:
            left_out.add("no caption", where)


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
    described: Any = parsing.from_json(shard.read(parts[".json"])) if ".json" in parts else {}
    described = described if isinstance(described, dict) else {}
    captions = [
        line.strip()
        for suffix in TEXTS
        if suffix in parts
        for line in _text_of(shard, parts[suffix]).split("\n")
        if line.strip()
    ]
    if not captions:
        named = list(described)
        captions = [
            caption
            for column in find(named).roles.get("caption", ())
            for caption in cells.captions_of(described[named[column]])
            if caption
        ]
    split = described.get("split")
    return (split_of(split) or split) if isinstance(split, str) else None, captions


def _text_of(shard: Shard, name: str) -> str:
    content = shard.read(name)
    if what := unfetched.pointer(content):
        raise ValueError(f"{name} is {what}")
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

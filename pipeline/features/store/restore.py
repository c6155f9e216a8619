"""Restore what describes a store: zarr.json, the arrays' metadata, image_ids and the ledger. No network is needed.

zarr.json has a copy beside it. The arrays' metadata follow from the layout, the image ids from the manifest or, where a
store has grown, from the photographs. A shard's entry in the ledger is made from its files, if they are whole and agree
with the manifest; nothing then tells whether a bit in them has changed, so this is said.
"""

import csv
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pipeline.features.store import contents, ledger, places, shard_contents
from pipeline.features.store.layout import (
    COPY,
    DONE,
    FAILED,
    UNUSED,
    StoreError,
    StoreLayout,
    arrays_digest,
    attributes,
    create,
    maker,
    read_header,
)
from pipeline.features.store.planning import file_sizes
from pipeline.features.store.verify import impossible
from pipeline.files import blake
from pipeline.files.atomic import write_bytes, write_text
from pipeline.files.digest import digest
from pipeline.files.parsing import from_json
from pipeline.manifest.table import NO_FILE, Manifest


class OtherStoreError(StoreError):
    """A store's description is another store's."""


def restore(path: Path, manifest_of: Callable[[str], Manifest], images: Path | None = None) -> Iterator[str]:
    """Restore what is lost or damaged. Call it inside `exclusive`: what was restored, a line each."""
    yield from _header(path)
    layout, made_from = read_header(path)
    yield from _metadata(path, layout)
    lost_ids, lost = not _has_ids(path, layout), [shard for shard in ledger.pending(path, layout) + _unreadable(
        path, layout) if all(shard_contents.file_of(path, layout, name, shard).exists() for name in layout.arrays())]
    if lost_ids or lost:
        manifest = manifest_of(str(made_from.get("dataset")))
        folder = images or manifest.images_folder
        if lost_ids:
            yield _image_ids(path, layout, manifest, folder)
        for shard in lost:
            if entry := _entry(path, layout, shard, manifest, folder if "settings" in made_from else None):
                ledger.write(path, replace(entry, maker=maker(made_from)))
                yield f"shard {shard}: ledger entry made from its files, whose bytes are taken as they are"


def _header(path: Path) -> Iterator[str]:
    file, copy = path / "zarr.json", path / COPY
    try:
        _require_shards_own(path)
        if not copy.exists():  # a store from before there was a copy
            shutil.copyfile(file, copy)
    except StoreError as error:
        if not copy.is_file() or not path.is_dir():
            raise
        damaged, content = file.read_bytes() if file.exists() else None, copy.read_bytes()
        write_bytes(file, content)
        try:
            _require_own(path, read_header(path)[0])
            _require_shards_own(path)
        except StoreError as told:  # the copy is no better
            file.unlink() if damaged is None else write_bytes(file, damaged)
            raise (told if isinstance(told, OtherStoreError) else error) from None
        yield f"zarr.json restored from {COPY}"


def _require_shards_own(path: Path) -> None:
    """Refuse a description of another network or other settings than those that the shards were made by."""
    if ledger.of_another_store(path, *read_header(path)):
        raise OtherStoreError(f"{path}: zarr.json and {COPY} are another store's, by what the ledger says made the "
                              f"shards; put this store's own {COPY} there")


def _require_own(path: Path, layout: StoreLayout) -> None:
    """Refuse a description by which features would be forgotten that are another store's than it describes."""
    for name, (shape, _) in layout.arrays().items():
        file = path / name / "zarr.json"
        try:
            there = from_json(file.read_text(encoding="utf-8"))["shape"]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # lost or damaged, and made again from the layout
        if there != [layout.images, *shape]:
            raise OtherStoreError(f"{path}: zarr.json and {COPY} describe {name} of shape "
                                  f"{[layout.images, *shape]}, its arrays are {there}; put this store's own {COPY} "
                                  f"there, or delete {file} if that is what is damaged")


def _metadata(path: Path, layout: StoreLayout) -> Iterator[str]:
    told = attributes(path)
    if arrays_digest(path, layout) == told.get("arrays_digest"):
        return
    _require_own(path, layout)
    with TemporaryDirectory() as folder:
        empty = Path(folder, "empty.zarr")
        create(empty, layout, {}, np.zeros(layout.images, np.int64))
        if attributes(empty)["arrays_digest"] != told.get("arrays_digest"):
            made_with = told.get("made_with", {}).get("zarr", "another version")
            raise StoreError(f"{path}: its arrays' metadata are lost, and this zarr writes others than zarr "
                             f"{made_with}, which wrote them; install that version, or extract again")
        for name in [*layout.arrays(), "image_ids"]:
            file = path / name / "zarr.json"
            content = (empty / name / "zarr.json").read_bytes()
            if not file.is_file() or file.read_bytes() != content:
                write_bytes(file, content)
                yield f"{name}/zarr.json restored from the layout"


def _has_ids(path: Path, layout: StoreLayout) -> bool:
    file = _ids_file(path)
    if not file.is_file() or file.stat().st_size != 8 * layout.images:
        return False
    return digest(contents.ids(path).tolist()) == attributes(path).get("image_ids_digest")


def _ids_file(path: Path) -> Path:
    return ledger.shard_file(path, "image_ids", 0, 1)


def _image_ids(path: Path, layout: StoreLayout, manifest: Manifest, folder: Path) -> str:
    """The manifest's ids, if these are the store's; else each image's row is found by its photograph."""
    found = manifest.images["image_id"].to_numpy()
    recorded, source = attributes(path).get("image_ids_digest"), "manifest"
    if digest(found.tolist()) != recorded:
        found, source = _by_photographs(path, layout, manifest, folder), "photographs"
    elif _most_differ(path, layout, manifest):
        raise OtherStoreError(f"{path}: by the sizes of their files, its images are not those of the manifest "
                              f"and zarr.json; put this store's own {COPY} and its manifest there, or extract again")
    write_bytes(_ids_file(path), found.astype("<i8").tobytes())
    if digest(found.tolist()) != recorded:
        _record_ids(path, found)
    return f"image_ids restored from the {source}"


def _most_differ(path: Path, layout: StoreLayout, manifest: Manifest) -> bool:
    """Whether most features were made from files of other sizes than the manifest has; a few may have been replaced."""
    wanted, differ, known = manifest.images["bytes"].to_numpy(), 0, 0
    for shard in set(range(layout.shards)) - set(_unreadable(path, layout)) - set(ledger.pending(path, layout)):
        entry = ledger.read(path, shard)
        assert entry is not None
        sizes, now = file_sizes(path, entry, layout), wanted[layout.places(shard)]
        there = (sizes != 0) & (sizes != NO_FILE) & (now != NO_FILE)
        known, differ = known + int(there.sum()), differ + int((there & (sizes != now)).sum())
    return 2 * differ > known


def _by_photographs(path: Path, layout: StoreLayout, manifest: Manifest, folder: Path) -> np.ndarray:
    rows: dict[str, list[int]] = {}
    for entry in ledger.entries(path, layout):
        for row, checksum in entry.photographs.items():
            rows.setdefault(checksum, []).append(row)
    if not layout.sizes or not rows:
        raise StoreError(f"{path}: its image ids are lost, and the manifest is another one; put that manifest back "
                         "with which it was made, or extract again")
    found = np.full(layout.images, UNUSED)
    for name, file in zip(manifest.images["image_id"], manifest.gallery(folder), strict=True):
        if there := rows.get(blake.if_there(file) or "", []):
            found[there.pop()] = name
    return found


def _record_ids(path: Path, ids: np.ndarray) -> None:
    """Rows of images that are in no manifest any more have lost their ids."""
    tree = from_json((path / "zarr.json").read_text(encoding="utf-8"))
    tree["attributes"]["image_ids_digest"] = digest(ids.tolist())
    for name in ("zarr.json", COPY):
        write_text(path / name, json.dumps(tree, indent=2))


def _unreadable(path: Path, layout: StoreLayout) -> list[int]:
    found = []
    for shard in range(layout.shards):
        try:
            ledger.read(path, shard)
        except StoreError:
            found.append(shard)
    return found


def _entry(path: Path, layout: StoreLayout, shard: int, manifest: Manifest, photographs: Path | None
           ) -> ledger.LedgerEntry | None:
    """A shard's entry by its files; None where they are not whole, or not of the manifest's images as they are."""
    there, rows = shard_contents.read(path, layout, shard), layout.rows(shard)
    if there.arrays.keys() != layout.arrays().keys():
        return None
    failed = (rows.start + np.flatnonzero(there.arrays["status"] == FAILED)).tolist()
    image_of = {row: image for image, row in enumerate(places.find(
        layout, contents.ids(path), manifest.images["image_id"].to_numpy()).tolist()) if row in rows}
    sizes, there_sizes = manifest.images["bytes"].to_numpy(), there.arrays["bytes"]
    done = {row: image for row, image in image_of.items() if there.arrays["status"][row - rows.start] == DONE}
    other = [row for row, image in done.items()
             if there_sizes[row - rows.start] != sizes[image] and NO_FILE not in (there_sizes[row - rows.start],
                                                                                  sizes[image])]
    if other or list(impossible(layout, rows, there.arrays, failed)):
        return None
    gallery = manifest.gallery(photographs, list(done.values())) if photographs else []
    checksums = {row: blake.if_there(file) for row, file in zip(done, gallery, strict=False)}
    return ledger.LedgerEntry(shard, rows.start, len(rows), _reasons(path, failed, image_of), there.checksums,
                              {row: checksum for row, checksum in sorted(checksums.items()) if checksum}, there.values)


def _reasons(path: Path, failed: list[int], image_of: dict[int, int]) -> dict[int, str]:
    """Why images failed, by failures.csv, which names them by their place in the manifest."""
    file = path / "failures.csv"
    text = file.read_text(encoding="utf-8", errors="replace").replace("\0", "") if file.is_file() else ""
    lines = list(csv.reader(text.splitlines()))[1:]
    told = {line[0]: line[2] for line in lines if len(line) == 3}
    return {row: told.get(str(image_of.get(row)), "the reason is lost") for row in failed}

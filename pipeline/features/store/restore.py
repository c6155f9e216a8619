"""Restore what describes a store: zarr.json, the arrays' metadata, image_ids and the ledger. No network is needed.

zarr.json has a copy beside it. The arrays' metadata follow from the layout, the image ids from the manifest or, if a
store has grown, from the photographs. A shard's entry in the ledger is made from its files, if they are complete and
agree with the manifest. Nothing then shows whether a bit in them has changed, so the user is told.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from pipeline.features.store import layout as layouts, ledger, shard_file, verify
from pipeline.features.store.layout import (
    COPY,
    DESCRIPTION,
    DONE,
    FAILED,
    UNUSED,
    StoreError,
    StoreLayout,
    maker,
    read_header,
)
from pipeline.files import atomic, blake, parsing, record
from pipeline.files.compared import DIFFERS, MATCHES, NOT_THERE
from pipeline.files.digest import digest
from pipeline.manifest.table import NO_FILE, Manifest


class OtherStoreError(StoreError):
    """The description of a store belongs to another store."""


def restore(path: Path, manifest_of: Callable[[str], Manifest], images: Path | None = None) -> Iterator[str]:
    """Restore what is lost or damaged, and yield a line for each thing restored. Call it inside `exclusive`."""
    yield from _record(path)
    yield from _header(path)
    layout, made_from = read_header(path)
    yield from _metadata(path, layout)
    file = ledger.shard_file(path, "image_ids", 0, 1)
    lost_ids = not (file.is_file() and file.stat().st_size == 8 * layout.images and digest(
        ledger.column(path, "image_ids").tolist()) == layouts.attributes(path).get("image_ids_digest"))
    entries = ledger.readable(path, layout)
    lost = [shard for shard in range(layout.shards) if layout.rows(shard) and shard not in entries and all(
        shard_file.file_of(path, layout, name, shard).exists() for name in layout.arrays())]
    if lost_ids or lost:
        manifest = manifest_of(str(made_from.get("dataset")))
        folder = images or manifest.images_folder
        if lost_ids:
            yield _image_ids(path, layout, manifest, folder)
        for shard in lost:
            if entry := _entry(path, layout, shard, manifest, folder if "settings" in made_from else None):
                ledger.write(path, replace(entry, maker=maker(made_from)))
                yield f"shard {shard}: ledger entry made from its files, whose bytes are taken as they are"
    yield from _failures(path, layout, manifest_of, made_from)
    if not (path / record.FILE).exists():
        record.keep(path, *DESCRIPTION)
        yield f"{record.FILE} made again from the files that it describes; which versions made the store is lost"


def _record(path: Path) -> Iterator[str]:
    """Delete an edited or damaged record: the files that it describes are then compared with one another alone."""
    if (path / record.FILE).exists() and any(step.verdict != MATCHES for step in record.compare(path)):
        (path / record.FILE).unlink()
        yield f"{record.FILE} was edited or damaged"


def _failures(path: Path, layout: StoreLayout, manifest_of: Callable[[str], Manifest], made_from: Mapping[str, Any]
              ) -> Iterator[str]:
    """Write failures.csv again if it is not as the record says."""
    if any(step.verdict in (DIFFERS, NOT_THERE) for step in record.compare(path, "failures.csv")):
        from pipeline.features.store.writer import write_failures  # and with it torch

        manifest = manifest_of(str(made_from.get("dataset")))
        rows = layout.find(ledger.column(path, "image_ids"), manifest.images["image_id"].to_numpy())
        write_failures(path, layout, manifest.images["file"].tolist(), rows)
        yield "failures.csv made again from the ledger"


def _header(path: Path) -> Iterator[str]:
    file, copy = path / "zarr.json", path / COPY
    try:
        _require_shards_own(path, file.name)
        if not copy.is_file() or copy.read_bytes() != file.read_bytes():
            with record.rewriting(path, COPY):
                atomic.write_bytes(copy, file.read_bytes())
            yield f"{COPY} restored from zarr.json"
    except StoreError as error:
        if not copy.is_file():
            raise
        try:
            _require_own(path, read_header(path, COPY)[0])
            _require_shards_own(path, COPY)
        except StoreError as of_copy:  # the copy is no better
            raise (of_copy if isinstance(of_copy, OtherStoreError) else error) from None
        with record.rewriting(path, file.name):
            atomic.write_bytes(file, copy.read_bytes())
        yield f"zarr.json restored from {COPY}"


def _require_shards_own(path: Path, file: str) -> None:
    """Refuse a description of another network or other settings than those that the shards were made by."""
    if ledger.of_another_store(path, *read_header(path, file)):
        raise OtherStoreError(f"{path}: zarr.json and {COPY} are another store's, by what the ledger says made the "
                              f"shards; put this store's own {COPY} there")


def _require_own(path: Path, layout: StoreLayout) -> None:
    """Refuse a description of other sizes than the arrays have: features would be forgotten."""
    for name, (shape, _) in layout.arrays().items():
        file = path / name / "zarr.json"
        try:
            found = parsing.from_json(file.read_text(encoding="utf-8"))["shape"]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # lost or damaged, and made again from the layout
        if found != [layout.images, *shape]:
            raise OtherStoreError(f"{path}: zarr.json and {COPY} describe {name} of shape "
                                  f"{[layout.images, *shape]}, its arrays are {found}; put this store's own {COPY} "
                                  f"there, or delete {file} if that is what is damaged")


def _metadata(path: Path, layout: StoreLayout) -> Iterator[str]:
    recorded = layouts.attributes(path)
    if layouts.arrays_digest(path, layout) == recorded.get("arrays_digest"):
        return
    _require_own(path, layout)
    with TemporaryDirectory() as folder:
        empty = Path(folder, "empty.zarr")
        layouts.create(empty, layout, {}, np.zeros(layout.images, np.int64))
        if layouts.attributes(empty)["arrays_digest"] != recorded.get("arrays_digest"):
            made_with = recorded.get("made_with", {}).get("zarr", "another version")
            raise StoreError(f"{path}: its arrays' metadata are lost, and this zarr writes others than zarr "
                             f"{made_with}, which wrote them; install that version, or extract again")
        for name in [*layout.arrays(), "image_ids"]:
            file = path / name / "zarr.json"
            content = (empty / name / "zarr.json").read_bytes()
            if not file.is_file() or file.read_bytes() != content:
                atomic.write_bytes(file, content)
                yield f"{name}/zarr.json restored from the layout"


def _image_ids(path: Path, layout: StoreLayout, manifest: Manifest, folder: Path) -> str:
    """Write the manifest's ids, if these are the store's; else find each image's row by its photograph.

    Rows of images that the manifest no longer has lose their ids.
    """
    ids, source = manifest.images["image_id"].to_numpy(), "manifest"
    recorded = layouts.attributes(path).get("image_ids_digest")
    if digest(ids.tolist()) != recorded:
        ids, source = _by_photographs(path, layout, manifest, folder), "photographs"
    elif _most_differ(path, layout, manifest):
        raise OtherStoreError(f"{path}: by the sizes of their files, its images are not those of the manifest "
                              f"and zarr.json; put this store's own {COPY} and its manifest there, or extract again")
    atomic.write_bytes(ledger.shard_file(path, "image_ids", 0, 1), ids.astype("<i8").tobytes())
    if digest(ids.tolist()) != recorded:
        tree = parsing.from_json((path / "zarr.json").read_text(encoding="utf-8"))
        tree["attributes"]["image_ids_digest"] = digest(ids.tolist())
        with record.rewriting(path, "zarr.json", COPY):
            for name in ("zarr.json", COPY):
                atomic.write_text(path / name, json.dumps(tree, indent=2))
    return f"image_ids restored from the {source}"


def _most_differ(path: Path, layout: StoreLayout, manifest: Manifest) -> bool:
    """Whether most features were made from files of other sizes than the manifest has; a few may have been replaced."""
    sizes, differ, known = manifest.images["bytes"].to_numpy(), 0, 0
    for shard, entry in ledger.readable(path, layout).items():
        before, now = ledger.file_sizes(path, entry, layout), sizes[layout.places(shard)]
        compared = (before != 0) & (before != NO_FILE) & (now != NO_FILE)
        known, differ = known + int(compared.sum()), differ + int((compared & (before != now)).sum())
    return 2 * differ > known


def _by_photographs(path: Path, layout: StoreLayout, manifest: Manifest, folder: Path) -> np.ndarray:
    rows: dict[str, list[int]] = {}
    for row, checksum in ledger.photographs(path, layout).items():
        rows.setdefault(checksum, []).append(row)
    if not layout.sizes or not rows:
        raise StoreError(f"{path}: its image ids are lost, and the manifest is another one; put that manifest back "
                         "with which it was made, or extract again")
    ids = np.full(layout.images, UNUSED)
    for name, file in zip(manifest.images["image_id"], manifest.gallery(folder), strict=True):
        if free := rows.get(blake.if_there(file) or "", []):
            ids[free.pop()] = name
    return ids


def _entry(path: Path, layout: StoreLayout, shard: int, manifest: Manifest, photographs: Path | None
           ) -> ledger.LedgerEntry | None:
    """Make a shard's entry from its files; None if they are incomplete, or do not fit the manifest's images."""
    contents, rows = shard_file.read(path, layout, shard), layout.rows(shard)
    if contents.arrays.keys() != layout.arrays().keys():
        return None
    status, sizes = contents.arrays["status"], contents.arrays["bytes"]
    found = layout.find(ledger.column(path, "image_ids"), manifest.images["image_id"].to_numpy())
    image_of = {row: image for image, row in enumerate(found.tolist()) if row in rows}
    done = {row: image for row, image in image_of.items() if status[row - rows.start] == DONE}
    now = manifest.images["bytes"].to_numpy()[list(done.values())]
    failed = (rows.start + np.flatnonzero(status == FAILED)).tolist()
    if ledger.other_files(sizes[[row - rows.start for row in done]], now).any() or list(verify.impossible(
            layout, rows, contents.arrays, failed)):
        return None
    gallery = manifest.gallery(photographs, list(done.values())) if photographs else []
    checksums = {row: blake.if_there(file) for row, file in zip(done, gallery, strict=False)}
    file = path / "failures.csv"  # names images by their place in the manifest
    text = file.read_text(encoding="utf-8", errors="replace").replace("\0", "") if file.is_file() else ""
    reasons = {line[0]: line[2] for line in csv.reader(io.StringIO(text, newline="")) if len(line) == 3}
    return ledger.LedgerEntry(shard, rows.start, len(rows),
                              {row: reasons.get(str(image_of.get(row)), "the reason is lost") for row in failed},
                              contents.checksums, {row: told for row, told in sorted(checksums.items()) if told},
                              contents.values)

"""What becomes of a store so that it is the one that is wanted: it is made, gone on with, grown or replaced.

Rows stay where they are. New images, and those whose files were replaced, get rows in further shards. The shards that
are there are linked into a successor beside the store, which takes its place when it is whole: nothing is copied, and
nothing is lost whenever a process is killed. Rows that are no image's any more stay until `pipeline compact`.

A store that begins takes the photographs that the same feature of another data set has, the donor, in the same way.
"""

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.features.store import contents, ledger, places
from pipeline.features.store.layout import UNUSED, StoreError, StoreLayout, create, maker, read_header
from pipeline.files import blake, record
from pipeline.files.atomic import take_place
from pipeline.files.gallery_file import GalleryFile
from pipeline.files.parsing import from_json
from pipeline.manifest.table import NO_FILE

WHOSE = ("images", "dataset")
"""What a fingerprint says of the images, which a store that grows finds, besides what makes their features."""
UNSAID = {"backend": "torch"}  # what it means that a fingerprint does not name one
TOGETHER = 4096  # files at once


@dataclass(frozen=True)
class Wanted:
    """The images that a store shall hold.

    Attributes:
        ids: Int64 [M], of all images of the manifest.
        sizes: Int64 [M], bytes of their files, by the manifest.
        fingerprint: All that the values depend on.
        layout: Sizes of a store that is made at once of all M images. A store that is there keeps its shards and its
            compressor.
        files: From some of the M images to their files, which are compared with those that features were made from;
            None where features were not made from files.
        photographs: The M checksums of these files by the manifest, "" where it does not tell.
        written: When the manifest was written, in nanoseconds: of a file that changed later it tells nothing.
        chosen: Bool [M], those to be extracted now, the others stay where they are there; None for all.
        grows: Whether a store of other images is grown; else it is another store.
        by_content: Whether the features depend on nothing but a file's content, so that an image which got another id
            keeps its row.
        retry_failed: Whether failed images are extracted again.
        donor: The store whose rows are taken if there is none yet; None for none.
        dataset: The manifest's data set, where a store grows.
    """

    ids: np.ndarray
    sizes: np.ndarray
    fingerprint: Mapping[str, Any]
    layout: StoreLayout
    files: Callable[[Sequence[int]], list[GalleryFile]] | None = None
    photographs: Sequence[str] | None = None
    written: int = 0
    chosen: np.ndarray | None = None
    grows: bool = False
    by_content: bool = False
    retry_failed: bool = False
    donor: Path | None = None
    dataset: str = ""


@dataclass(frozen=True)
class Plan:
    """How a store becomes the one that is wanted."""

    changed: str  # how it was made otherwise, "" if it was not; only a user's leave lets it be replaced
    layout: StoreLayout  # the sizes that it gets
    image_ids: np.ndarray  # int64 [I], the id of each row
    pending: list[int]  # the shards to write
    kept: list[int]  # the shards that stay as they are
    new: bool  # whether a successor is to be made first; False where the store has these sizes and ids already
    seen: list[Path]  # ledger entries whose photographs were compared and are the same
    donor: Path | None = None  # the store that the kept shards are of, None for this one

    @property
    def images(self) -> int:
        """How many images are to be written."""
        return sum(len(self.layout.rows(shard)) for shard in self.pending)

    @property
    def taken(self) -> int:
        """How many images are taken from the donor."""
        return len(places.in_use(self.layout, self.image_ids)) - self.images if self.donor else 0

    def images_of_rows(self, ids: np.ndarray) -> np.ndarray:
        """Find the image of each row.

        Args:
            ids: Int64 [M], the images' ids.

        Returns:
            Int64 [I], the place in `ids`; ABSENT for a row that is none of these images'.
        """
        rows, found = places.find(self.layout, self.image_ids, ids), np.full(self.layout.images, places.ABSENT)
        found[rows[rows != places.ABSENT]] = np.flatnonzero(rows != places.ABSENT)
        return found


def plan(path: Path, wanted: Wanted) -> Plan:
    """Compare a store with the one that is wanted. Nothing is written.

    Args:
        path: The store; it need not exist.
        wanted: What is wanted.

    Returns:
        What is to be done.
    """
    donor = None if path.exists() else wanted.donor
    if donor is None and not path.exists():
        return at_once(wanted)
    path = donor or path
    try:
        layout, made_from = read_header(path)
    except StoreError as error:
        return at_once(wanted, str(error))
    same_images = donor is None and made_from.get("images") == wanted.fingerprint.get("images")
    changed = differs(made_from, wanted.fingerprint, WHOSE if wanted.grows else ())
    if changed := changed or _layout_differs(layout, wanted.layout):
        return at_once(wanted, "" if donor else changed)
    if donor or (wanted.grows and made_from.get("dataset") != wanted.dataset):
        return _taken(path, layout, wanted, donor)
    return _gone_on_with(path, layout, wanted, same_images)


@contextmanager
def making(path: Path, wanted: Wanted, todo: Plan, if_changed: str = "refuse", origin: Path | None = None
           ) -> Iterator[tuple[Path, Plan]]:
    """Make a store ready for the shards that are to be written. Call it inside `exclusive`.

    The store stays as it is until its successor is whole. A successor that was not finished is gone on with.

    Args:
        path: The store.
        wanted: What is wanted.
        todo: What `plan` found.
        if_changed: "refuse" or "redo" for a store that was made otherwise.
        origin: The store whose features are written, if there is one.

    Yields:
        Where to write, the store or STORE.successor; and what is left to do there.

    Raises:
        StoreError: If a store that is there may not be replaced.
    """
    if todo.changed:
        _refuse(path, todo.changed, if_changed)
    path = path.resolve()
    replaced = todo.new and path.exists()
    there, store = path, path.with_name(path.name + ".successor") if replaced else path
    if replaced and store.exists():
        begun = plan(store, wanted)
        # one with more to do is a rewriting, which lacks features that are there
        if not begun.changed and begun.images <= todo.images and (wanted.grows or begun.layout == todo.layout):
            there, todo = store, begun
    _begin(todo.donor or there, store, wanted.fingerprint, todo, origin)
    yield store, todo
    if replaced:
        take_place(store, path)


def _refuse(path: Path, changed: str, if_changed: str) -> None:
    """Nothing but a feature store, of any version, is ever replaced."""
    try:
        attributes = from_json((path / "zarr.json").read_text(encoding="utf-8"))["attributes"]
        is_store = "fingerprint_digest" in attributes and "layout" in attributes
    except (OSError, ValueError, KeyError, TypeError):
        is_store = False
    if not is_store:
        raise StoreError(f"{path}: exists and is not a feature store; choose another --out")
    if if_changed == "refuse":
        raise StoreError(f"{path}: was made with other settings ({changed}); choose another --out, or --if-changed "
                         "redo to replace it")


def _begin(there: Path, store: Path, fingerprint: Mapping[str, Any], todo: Plan, origin: Path | None) -> None:
    """Create a store with what is kept of the one that is there, or go on with that."""
    def link(making: Path) -> None:
        for shard in todo.kept:
            for name, (shape, _) in todo.layout.arrays().items():
                _link(*(ledger.shard_file(folder, name, shard, len(shape) + 1) for folder in (there, making)))
            entry = ledger.read(there, shard)
            if entry is not None and entry.maker not in ("", maker(fingerprint)):  # of another data set's store
                ledger.write(making, replace(entry, maker=maker(fingerprint)))
            else:
                _link(*(ledger.file(folder, shard) for folder in (there, making)))
        versions = record.read(there).versions
        if todo.kept and versions is not None:
            record.write(making, versions)

    if todo.new:
        create(store, todo.layout, fingerprint, todo.image_ids, link, origin or (there if todo.kept else None))
        return
    if todo.pending:
        for leftover in store.rglob("*.partial*"):  # of a process that was killed
            leftover.unlink()
    for entry in todo.seen:
        try:
            os.utime(entry)
        except OSError:  # a medium that cannot be written; the photographs are compared again next time
            break


def _link(there: Path, here: Path) -> None:
    here.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(there, here)
    except OSError:  # a file system without links
        shutil.copy2(there, here)


def differs(made_from: Mapping[str, Any], fingerprint: Mapping[str, Any], besides: Collection[str] = ()) -> str:
    """The first difference of two fingerprints in words, "" if there is none but in the key `besides`."""
    for key in sorted((made_from.keys() | fingerprint.keys()) - set(besides), key=lambda key: (key != "engine", key)):
        if made_from.get(key) != fingerprint.get(key):
            there, now = (made.get(key, UNSAID.get(key)) for made in (made_from, fingerprint))
            return f"{key}: {there} there, {now} now"
    return ""


def _layout_differs(there: StoreLayout, wanted: StoreLayout) -> str:
    """Compare what an image has in the store, not how images are divided into shards and compressed."""
    now = replace(wanted, shard_images=there.shard_images, compressor=there.compressor, images=there.images,
                  sizes=there.sizes)
    return "" if now == there else f"layout: {there} there, {now} now"


def at_once(wanted: Wanted, changed: str = "") -> Plan:
    """Plan a store of the chosen images alone, in their order."""
    layout, ids = wanted.layout, wanted.ids
    if wanted.chosen is not None and not wanted.chosen.all():
        ids = ids[wanted.chosen]
        layout = replace(layout, images=len(ids), sizes=_cut(len(ids), layout.shard_images))
    return Plan(changed, layout, ids, list(range(layout.shards)), [], True, [])


def _cut(images: int, size: int) -> tuple[int, ...]:
    return tuple(min(size, images - first) for first in range(0, images, size))


def _gone_on_with(path: Path, there: StoreLayout, wanted: Wanted, same_images: bool) -> Plan:
    ids, entries = contents.ids(path), ledger.entries(path, there)
    found = places.find(there, ids, wanted.ids)
    rows, seen = _right_rows(path, there, found, entries, wanted, same_images)
    pending = ledger.pending(path, there)
    unfinished = np.concatenate([np.arange(0), *(there.places(shard) for shard in pending)])
    chosen = np.ones(len(rows), bool) if wanted.chosen is None else wanted.chosen
    if same_images and not ((rows == places.ABSENT) & chosen).any() and np.isin(unfinished, rows).all():
        return Plan("", there, ids, pending, [], False, seen)
    replaced = np.flatnonzero((rows != found) & (found != places.ABSENT))
    changed = f"image row {replaced[0]} is another file now" if len(replaced) and not wanted.grows else ""
    rows[np.isin(rows, unfinished)] = places.ABSENT  # their shards are given up
    add = np.flatnonzero((rows == places.ABSENT) & chosen)
    more = _with_more(there, ids, wanted, rows, add, [entry.shard for entry in entries if entry.images])
    return replace(more, changed=changed)


def _taken(path: Path, there: StoreLayout, wanted: Wanted, donor: Path | None) -> Plan:
    """The images of another data set's store that were made from the photographs wanted, and shards for the others."""
    entries = ledger.entries(path, there)
    nowhere = np.full(len(wanted.ids), places.ABSENT)
    rows = nowhere.copy()
    if wanted.by_content and wanted.photographs is not None and any(wanted.photographs):
        recorded, failed = _recorded(there, entries)
        recorded[failed] = ""
        now = _checksums(nowhere, recorded, np.zeros(there.images, np.int64), wanted, same_images=False)
        _find_by_content(rows, now, recorded)
    there_too = rows != places.ABSENT
    if not there_too.any():
        return at_once(wanted, "" if donor else f"images: of another data set than {wanted.dataset}")
    holding = set((rows[there_too] // there.shard_images).tolist())
    chosen = True if wanted.chosen is None else wanted.chosen
    return replace(_with_more(there, np.full(there.images, UNUSED), wanted, rows, np.flatnonzero(~there_too & chosen),
                              [entry.shard for entry in entries if entry.shard in holding]), donor=donor)


def _with_more(there: StoreLayout, ids: np.ndarray, wanted: Wanted, rows: np.ndarray, add: np.ndarray,
               kept: list[int]) -> Plan:
    """The finished shards as they are, and behind them shards for images that are added."""
    sizes = [0] * (kept[-1] + 1 if kept else 0)
    for shard in kept:
        sizes[shard] = len(there.rows(shard))
    more = _cut(len(add), there.shard_images)
    if not [*sizes, *more]:
        return at_once(wanted)
    layout = replace(there, sizes=(*sizes, *more),
                     images=(len(sizes) + len(more) - 1) * there.shard_images + [*sizes, *more][-1])
    new_ids = np.full(layout.images, UNUSED)
    of_none = np.where(np.isin(ids, wanted.ids), UNUSED, ids)
    for shard in kept:
        here = there.rows(shard)
        new_ids[here.start:here.stop] = of_none[here.start:here.stop]
    new_ids[rows[rows != places.ABSENT]] = wanted.ids[rows != places.ABSENT]
    first = len(sizes) * there.shard_images
    new_ids[first:first + len(add)] = wanted.ids[add]  # all shards but the last are full
    return Plan("", layout, new_ids, list(range(len(sizes), layout.shards)), kept, True, [])


def _right_rows(path: Path, there: StoreLayout, rows: np.ndarray, entries: list[ledger.LedgerEntry], wanted: Wanted,
                same_images: bool) -> tuple[np.ndarray, list[Path]]:
    """The row of each image whose features are right, ABSENT for the others; and the entries that were compared."""
    finished = np.zeros(there.images, bool)
    sizes, written = np.zeros((2, there.images), np.int64)  # of the file that features were made from; of their entry
    for entry in entries:
        here = there.rows(entry.shard)
        finished[here.start:here.stop] = True
        sizes[here.start:here.stop] = file_sizes(path, entry, there)
        written[here.start:here.stop] = ledger.file(path, entry.shard).stat().st_mtime_ns
    checksums, failed = _recorded(there, entries)
    images = np.flatnonzero((rows != places.ABSENT) & finished[rows])
    own = rows[images]
    now = _checksums(rows, checksums, written, wanted, same_images)
    other_content = (now[images] != "") & (now[images] != checksums[own])
    other_size = (sizes[own] != wanted.sizes[images]) & (sizes[own] != NO_FILE) & (wanted.sizes[images] != NO_FILE)
    wrong = np.where(failed[own], wanted.retry_failed, other_size | other_content)
    right = rows.copy()
    right[images[wrong]] = places.ABSENT
    compared = np.unique(own[~wrong & (now[images] != "")] // there.shard_images).tolist()
    if wanted.by_content and not same_images:
        _find_by_content(right, now, checksums)
    return right, [ledger.file(path, shard) for shard in compared]


def _recorded(there: StoreLayout, entries: list[ledger.LedgerEntry]) -> tuple[np.ndarray, np.ndarray]:
    """Each row's checksum of the file that it was made from, "" where none is known; and whether it failed."""
    checksums, failed = np.full(there.images, "", object), np.zeros(there.images, bool)
    for entry in entries:
        here = there.rows(entry.shard)
        failed[[row for row in entry.failed if row in here]] = True
        known = [row for row in entry.photographs if row in here]
        checksums[known] = [entry.photographs[row] for row in known]
    return checksums, failed


def file_sizes(path: Path, entry: ledger.LedgerEntry, layout: StoreLayout) -> np.ndarray:
    """The sizes of the image files that a finished shard was made from; zeros where they are lost."""
    file = ledger.shard_file(path, "bytes", entry.shard, 1)
    raw = file.read_bytes() if file.exists() else b""
    rows = len(layout.rows(entry.shard))
    return np.frombuffer(raw, "<i8")[:rows] if len(raw) >= rows * 8 else np.zeros(rows, np.int64)


def _checksums(rows: np.ndarray, recorded: np.ndarray, written: np.ndarray, wanted: Wanted, same_images: bool
               ) -> np.ndarray:
    """The checksum of each image's file as it is now, str [M]; "" where it is not needed or not known.

    In a changed manifest an id may stand for another file, so all are compared: by what the manifest says of a file
    that did not change since, else the file is read. Otherwise those files are read that are others by the manifest, or
    that changed after their shard was written: a file's change time is set by the system, also where another file of
    the same size is moved to its place.
    """
    found = np.full(len(rows), "", object)
    with ThreadPoolExecutor() as threads:  # hashing lets go of Python's lock
        for first in range(0, len(rows) if wanted.files else 0, TOGETHER):
            assert wanted.files is not None
            images = range(first, min(first + TOGETHER, len(rows)))
            read = []
            for image, file in zip(images, wanted.files(images), strict=True):
                row = rows[image]
                try:
                    changed = file.changed_at() or 0
                except OSError:  # lost since; the features are right
                    continue
                said = "" if wanted.photographs is None else wanted.photographs[image]
                before = recorded[row] if row != places.ABSENT else ""
                if not same_images and said and changed <= wanted.written:
                    found[image] = said
                elif not same_images or (before and (said not in ("", before) or changed > written[row])):
                    read.append((image, file))
            checksums = threads.map(blake.if_there, [file for _, file in read])
            for (image, _), checksum in zip(read, checksums, strict=True):
                found[image] = checksum or ""
    return found


def _find_by_content(right: np.ndarray, now: np.ndarray, recorded: np.ndarray) -> None:
    """Give images without a row one that no image has and that was made from the same bytes."""
    unused = recorded != ""
    unused[right[right != places.ABSENT]] = False
    free: dict[str, list[int]] = {}
    for row in np.flatnonzero(unused)[::-1].tolist():
        free.setdefault(recorded[row], []).append(row)
    for image in np.flatnonzero((right == places.ABSENT) & (now != "")).tolist():
        if there := free.get(now[image]):
            right[image] = there.pop()

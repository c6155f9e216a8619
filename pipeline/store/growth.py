"""A store whose manifest has changed: what stays, what is extracted, and the successor that holds both.

Rows stay where they are. New images, and those whose files were replaced, get rows in further shards. The shards that
are there are linked into a successor beside the store, which takes its place when it is whole: nothing is copied, and
nothing is lost whenever a process is killed. Rows that are no image's any more stay until `pipeline compact`.

A store that begins takes the photographs that the same feature of another data set has, the donor, in the same way.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.files import blake, code
from pipeline.files.gallery_file import GalleryFile
from pipeline.manifest.table import NO_FILE
from pipeline.store import contents, ledger, places
from pipeline.store.layout import UNUSED, StoreError, StoreLayout, create, read_header
from pipeline.store.survey import differs, file_sizes, like
from pipeline.store.writer import clear


@dataclass(frozen=True)
class Wanted:
    """The images that a store shall hold.

    Attributes:
        ids: Int64 [M], of all images of the manifest.
        sizes: Int64 [M], bytes of their files, by the manifest.
        files: Their M files.
        photographs: The M checksums of these files by the manifest, "" where it does not tell.
        chosen: Bool [M], those to be extracted now. The others stay where they are there.
        fingerprint: All that the values depend on.
        layout: Sizes of a store that is made at once of all M images. A store that is there keeps its shards and its
            compressor.
        by_content: Whether the features depend on nothing but a file's content, so that an image which got another id
            keeps its row.
        retry_failed: Whether failed images are extracted again.
        written: When the manifest was written, in nanoseconds: of a file that changed later it tells nothing.
        donor: The store whose rows are taken if there is none yet; None for none.
        dataset: The manifest's data set.
    """

    ids: np.ndarray
    sizes: np.ndarray
    files: list[GalleryFile]
    photographs: list[str]
    chosen: np.ndarray
    fingerprint: Mapping[str, Any]
    layout: StoreLayout
    by_content: bool = True
    retry_failed: bool = False
    written: int = 0
    donor: Path | None = None
    dataset: str = ""


@dataclass(frozen=True)
class Plan:
    """How a store becomes the one that is wanted.

    Attributes:
        changed: How it was made otherwise, "" if it was not; it must then be replaced as a whole.
        layout: The sizes that it gets.
        image_ids: Int64 [I], the id of each row.
        pending: The shards to extract.
        kept: The shards that stay as they are.
        new: Whether a successor is to be made first; False where the store has these sizes and ids already.
        seen: Ledger entries whose photographs were compared and are the same.
        donor: The store that the kept shards are of, None for this one.
    """

    changed: str
    layout: StoreLayout
    image_ids: np.ndarray
    pending: list[int]
    kept: list[int]
    new: bool
    seen: list[Path]
    donor: Path | None = None

    @property
    def images(self) -> int:
        """How many images are to be extracted."""
        return sum(len(self.layout.rows(shard)) for shard in self.pending)

    @property
    def taken(self) -> int:
        """How many images are taken from the donor."""
        return len(places.in_use(self.layout, self.image_ids)) - self.images if self.donor else 0


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
        return _at_once(wanted, "")
    path = donor or path
    try:
        layout, made_from = read_header(path)
    except StoreError as error:
        return _at_once(wanted, str(error))
    same_images = donor is None and made_from.get("images") == wanted.fingerprint.get("images")
    if changed := differs(made_from, wanted.fingerprint, "images") or _layout_differs(layout, wanted.layout):
        return _at_once(wanted, "" if donor else changed)
    if not same_images and (donor or made_from.get("dataset") != wanted.dataset):
        return _taken(path, layout, wanted, donor)
    return _grown(path, layout, wanted, same_images)


def carry_out(there: Path, store: Path, wanted: Wanted, todo: Plan) -> Plan:
    """Make a store ready for the shards that are to be extracted. Call it inside `exclusive`.

    Args:
        there: The store as it is; it stays as it is where `store` is another path.
        store: Where the shards are written: `there` or its successor, which an earlier run may have begun.
        wanted: What is wanted.
        todo: What `plan` found in `there`.

    Returns:
        What is left to do in `store`.
    """
    if store.exists() and store != there.resolve():
        begun = plan(store, wanted)
        if not begun.changed and begun.images <= todo.images:  # else a rewriting, which lacks features that are there
            there, todo = store, begun
    _make(todo.donor or there, store, wanted.fingerprint, todo)
    return todo


def _make(path: Path, store: Path, fingerprint: Mapping[str, Any], todo: Plan) -> None:
    def link(making: Path) -> None:
        for shard in todo.kept:
            for name, (shape, _) in todo.layout.arrays().items():
                _link(*(ledger.shard_file(folder, name, shard, len(shape) + 1) for folder in (path, making)))
            _link(*(ledger.file(folder, shard) for folder in (path, making)))
        if todo.kept and (path / code.FILE).exists():
            _link(path / code.FILE, making / code.FILE)

    if todo.new:
        create(store, todo.layout, fingerprint, todo.image_ids, link, path if todo.kept else None)
        return
    if todo.pending:
        clear(store)
    for entry in todo.seen:
        try:
            os.utime(entry)
        except OSError:  # a medium that cannot be written; the photographs are compared again next time
            break


def _at_once(wanted: Wanted, changed: str) -> Plan:
    """A store of the chosen images alone, in their order."""
    ids, size = wanted.ids[wanted.chosen], wanted.layout.shard_images
    layout = wanted.layout if wanted.chosen.all() \
        else replace(wanted.layout, images=len(ids), sizes=_cut(len(ids), size))
    return Plan(changed, layout, ids, list(range(layout.shards)), [], True, [])


def _cut(images: int, size: int) -> tuple[int, ...]:
    return tuple(min(size, images - first) for first in range(0, images, size))


def _layout_differs(there: StoreLayout, wanted: StoreLayout) -> str:
    """Compare what an image has in the store, not how images are divided into shards and compressed."""
    now = replace(like(there, wanted), images=there.images, sizes=there.sizes)
    return "" if now == there else f"layout: {there} there, {now} now"


def _grown(path: Path, there: StoreLayout, wanted: Wanted, same_images: bool) -> Plan:
    ids = contents.ids(path)
    entries = ledger.entries(path, there)
    rows, seen = _kept_rows(path, there, ids, entries, wanted, same_images)
    pending = ledger.pending(path, there)
    unfinished = np.concatenate([np.arange(0), *(there.places(shard) for shard in pending)])
    if same_images and not ((rows == places.ABSENT) & wanted.chosen).any() and np.isin(unfinished, rows).all():
        return Plan("", there, ids, pending, [], False, seen)
    rows[np.isin(rows, unfinished)] = places.ABSENT  # their shards are given up
    add = np.flatnonzero((rows == places.ABSENT) & wanted.chosen)
    return _with_more(there, ids, wanted, rows, add, [entry.shard for entry in entries if entry.images])


def _taken(path: Path, there: StoreLayout, wanted: Wanted, donor: Path | None) -> Plan:
    """The images of another data set's store that were made from the photographs wanted, and shards for the others."""
    entries = ledger.entries(path, there)
    nowhere = np.full(len(wanted.ids), places.ABSENT)
    rows = nowhere.copy()
    if wanted.by_content and any(wanted.photographs):
        recorded = {row: checksum for entry in entries for row, checksum in entry.photographs.items()
                    if row not in entry.failed}
        _find_by_content(rows, _checksums(nowhere, recorded, {}, wanted, same_images=False), recorded)
    if (rows == places.ABSENT).all():
        return _at_once(wanted, "" if donor else f"images: of another data set than {wanted.dataset}")
    kept = [entry.shard for entry in entries if np.isin(there.places(entry.shard), rows).any()]
    add = np.flatnonzero((rows == places.ABSENT) & wanted.chosen)
    return replace(_with_more(there, np.full(there.images, UNUSED), wanted, rows, add, kept), donor=donor)


def _with_more(there: StoreLayout, ids: np.ndarray, wanted: Wanted, rows: np.ndarray, add: np.ndarray,
               kept: list[int]) -> Plan:
    """The finished shards as they are, and behind them shards for images that are added."""
    known = rows[rows != places.ABSENT]
    sizes = [len(there.rows(shard)) if shard in set(kept) else 0 for shard in range(there.shards)]
    while sizes and not sizes[-1]:
        sizes.pop()
    more = _cut(len(add), there.shard_images)
    if not [*sizes, *more]:
        return _at_once(wanted, "")
    layout = replace(there, sizes=(*sizes, *more),
                     images=(len(sizes) + len(more) - 1) * there.shard_images + [*sizes, *more][-1])
    new_ids = np.full(layout.images, UNUSED)
    for shard in kept:
        here = there.places(shard)
        new_ids[here] = np.where(np.isin(ids[here], wanted.ids), UNUSED, ids[here])
    new_ids[known] = wanted.ids[rows != places.ABSENT]
    pending = list(range(len(sizes), layout.shards))
    for shard, first in zip(pending, range(0, len(add), there.shard_images), strict=True):
        new_ids[layout.places(shard)] = wanted.ids[add[first:first + there.shard_images]]
    return Plan("", layout, new_ids, pending, kept, True, [])


def _kept_rows(path: Path, there: StoreLayout, ids: np.ndarray, entries: list[ledger.LedgerEntry], wanted: Wanted,
               same_images: bool) -> tuple[np.ndarray, list[Path]]:
    """The row of each image whose features are right, ABSENT for the others; and the entries that were compared."""
    rows = places.find(there, ids, wanted.ids)
    recorded = {row: checksum for entry in entries for row, checksum in entry.photographs.items()}
    failed = {row for entry in entries for row in entry.failed}
    finished = {row for entry in entries for row in there.rows(entry.shard)}
    bytes_of = _bytes(path, there, entries)
    newest = {row: ledger.file(path, entry.shard) for entry in entries for row in there.rows(entry.shard)}
    compared = _checksums(rows, recorded, newest, wanted, same_images)
    right = rows.copy()
    for image, row in enumerate(rows.tolist()):
        if row not in finished:
            continue
        size = int(wanted.sizes[image])
        other_size = bytes_of[row] != size and NO_FILE not in (bytes_of[row], size)
        other_content = compared.get(image, recorded.get(row)) != recorded.get(row)
        if wanted.retry_failed if row in failed else other_size or other_content:
            right[image] = places.ABSENT
    seen = {newest[row] for image, row in enumerate(rows.tolist()) if image in compared and row in newest
            and right[image] == row}
    if wanted.by_content and not same_images:
        _find_by_content(right, compared, recorded)
    return right, sorted(seen)


def _bytes(path: Path, there: StoreLayout, entries: list[ledger.LedgerEntry]) -> dict[int, int]:
    """Row -> size of the image file that its features were made from."""
    found: dict[int, int] = {}
    for entry in entries:
        found.update(zip(there.rows(entry.shard), file_sizes(path, entry, there).tolist(), strict=True))
    return found


def _checksums(rows: np.ndarray, recorded: Mapping[int, str], newest: Mapping[int, Path], wanted: Wanted,
               same_images: bool) -> dict[int, str]:
    """Image -> checksum of its file as it is now.

    In a changed manifest an id may stand for another file, so all are compared: by what the manifest says of a file
    that did not change since, else the file is read. Otherwise those files are read that are others by the manifest, or
    that changed after their shard was written: a file's change time is set by the system, also where another file of
    the same size is moved to its place.
    """
    written = {file: file.stat().st_mtime_ns for file in set(newest.values())}
    found, told = [], {}
    for image, row in enumerate(rows.tolist()):
        try:
            changed = wanted.files[image].changed_at() or 0
        except OSError:  # lost since; the features are right
            continue
        said = wanted.photographs[image]
        if not same_images and said and changed <= wanted.written:
            told[image] = said
        elif not same_images or (row in recorded and (
                said not in ("", recorded.get(row)) or changed > written[newest[row]])):
            found.append(image)
    with ThreadPoolExecutor() as threads:  # hashing lets go of Python's lock
        checksums = threads.map(blake.if_there, [wanted.files[image] for image in found])
        return told | {image: checksum for image, checksum in zip(found, checksums, strict=True) if checksum}


def _find_by_content(right: np.ndarray, compared: Mapping[int, str], recorded: Mapping[int, str]) -> None:
    """Give images without a row one that no image has and that was made from the same bytes."""
    free: dict[str, list[int]] = {}
    for row in sorted(recorded.keys() - set(right.tolist()), reverse=True):
        free.setdefault(recorded[row], []).append(row)
    for image in np.flatnonzero(right == places.ABSENT).tolist():
        if there := free.get(compared.get(image, "")):
            right[image] = there.pop()


def _link(there: Path, here: Path) -> None:
    here.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(there, here)
    except OSError:  # a file system without links
        shutil.copy2(there, here)

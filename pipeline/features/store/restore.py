"""Restore what describes a store: zarr.json, the arrays' metadata, ids and the ledger. No network
is needed.

zarr.json has a copy beside it. The arrays' metadata follow from the layout, the ids from the
manifest or, if a store has grown, from the photographs. A shard's entry in the ledger is made from
its files, if they are complete and agree with the manifest. Nothing then shows whether a bit in
them has changed, so a warning says so.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from pipeline.artefacts import Record, artefact, record as records
from pipeline.artefacts.record import FILE
from pipeline.features.store import layout as layouts, ledger, shard_file, verify
from pipeline.features.store.layout import (
    COPY,
    StoreError,
    StoreLayout,
    imported,
    maker,
    read_header,
)
from pipeline.files import atomic, parsing
from pipeline.files.compared import DIFFERS, MATCHES, MISSING
from pipeline.files.digest import digest
from pipeline.manifest.columns import NO_FILE
from pipeline.manifest.sources import Sources, of as sources_of
from pipeline.manifest.table import Manifest


class OtherStoreError(StoreError):
    """The description of a store belongs to another store."""


def restore(
    path: Path, manifest_of: Callable[[str], Manifest], images: Path | None = None
) -> Iterator[str]:
    """Restore what is lost or damaged, and yield a line for each thing restored. Call it inside
    `exclusive`.
    """
    lost_record = _record(path)
    if lost_record:
        yield lost_record
    yield from _header(path)
    layout, made_from = read_header(path)
    yield from _metadata(path, layout)
    file = ledger.shard_file(path, "ids", 0, 1)
    lost_ids = not (
        file.is_file()
        and file.stat().st_size == 8 * layout.total
        and digest(ledger.column(path, "ids").tolist())
        == layouts.attributes(path).get("ids_digest")
    )
    entries = ledger.readable(path, layout)
    lost = [
        shard
        for shard in range(layout.shards)
        if layout.rows(shard)
        and shard not in entries
        and all(shard_file.file_of(path, layout, name, shard).exists() for name in layout.arrays())
    ]
    if lost_ids or lost:
        sources = sources_of(manifest_of(str(made_from.get("dataset"))), layout.kind)
        if lost_ids:
            yield _ids(path, layout, sources, images)
        for shard in lost:
            if entry := _entry(path, layout, shard, sources, images, made_from):
                ledger.write(path, entry)
                yield f"shard {shard}: ledger entry made from its files, whose bytes are taken as they are"
    yield from _failures(path, layout, manifest_of, made_from)
    if lost_record:
        records.describe(path, *layouts.DESCRIPTION)
        yield f"{FILE} made again from the files that it describes; which versions made the store is lost"


def _record(path: Path) -> str | None:
    """Replace a lost, edited or damaged record by an empty one: the files are then compared with
    one another alone.
    """
    if all(step.verdict == MATCHES for step in artefact.verify(path)):
        return None
    lost = not (path / FILE).exists()
    if (path / "zarr.json").exists() or (path / COPY).exists():
        records.save(path, Record(kind=layouts.KIND))
    return f"{FILE} was {'lost' if lost else 'edited or damaged'}"


def _failures(
    path: Path,
    layout: StoreLayout,
    manifest_of: Callable[[str], Manifest],
    made_from: Mapping[str, Any],
) -> Iterator[str]:
    """Write failures.csv again if it is not as the record says."""
    if any(step.verdict in (DIFFERS, MISSING) for step in artefact.verify(path, "failures.csv")):
        from pipeline.features.store.writer import write_failures  # and with it torch

        sources = sources_of(manifest_of(str(made_from.get("dataset"))), layout.kind)
        write_failures(
            path, layout, sources.names, layout.find(ledger.column(path, "ids"), sources.ids)
        )
        yield "failures.csv made again from the ledger"


def _header(path: Path) -> Iterator[str]:
    file, copy = path / "zarr.json", path / COPY
    try:
        _require_shards_own(path, file.name)
        if not copy.is_file() or copy.read_bytes() != file.read_bytes():
            with records.rewriting(path, COPY):
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
        with records.rewriting(path, file.name):
            atomic.write_bytes(file, copy.read_bytes())
        yield f"zarr.json restored from {COPY}"


def _require_shards_own(path: Path, file: str) -> None:
    """Refuse a description of another network or other settings than those that the shards were
    made by.
    """
    if ledger.of_another_store(path, *read_header(path, file)):
        raise OtherStoreError(
            f"{path}: zarr.json and {COPY} are another store's, by what the ledger says made the "
            f"shards; put this store's own {COPY} there"
        )


def _require_own(path: Path, layout: StoreLayout) -> None:
    """Refuse a description of other sizes than the arrays have: features would be forgotten."""
    for name, (shape, _) in layout.arrays().items():
        file = path / name / "zarr.json"
        try:
            recorded = parsing.from_json(file.read_text(encoding="utf-8"))["shape"]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # lost or damaged, and made again from the layout
        if recorded != [layout.total, *shape]:
            raise OtherStoreError(
                f"{path}: zarr.json and {COPY} describe {name} of shape "
                f"{[layout.total, *shape]}, its arrays are {recorded}; put this store's own {COPY} "
                f"there, or delete {file} if that is what is damaged"
            )


def _metadata(path: Path, layout: StoreLayout) -> Iterator[str]:
    recorded = layouts.attributes(path)
    if layouts.arrays_digest(path, layout) == recorded.get("arrays_digest"):
        return
    _require_own(path, layout)
    with TemporaryDirectory() as folder:
        empty = Path(folder, "empty.zarr")
        layouts.create(empty, layout, {}, np.zeros(layout.total, np.int64))
        if layouts.attributes(empty)["arrays_digest"] != recorded.get("arrays_digest"):
            machines = records.require(path).machines or [{}]
            version = machines[-1].get("zarr", "another version")
            raise StoreError(
                f"{path}: its arrays' metadata are lost, and this zarr writes others than zarr "
                f"{version}, which wrote them; install that version, or extract again"
            )
        for name in [*layout.arrays(), "ids"]:
            file = path / name / "zarr.json"
            content = (empty / name / "zarr.json").read_bytes()
            if not file.is_file() or file.read_bytes() != content:
                atomic.write_bytes(file, content)
                yield f"{name}/zarr.json restored from the layout"


def _ids(path: Path, layout: StoreLayout, sources: Sources, folder: Path | None) -> str:
    """Write the manifest's ids, if these are the store's; else find each id's row by its file or
    caption.
    """
    ids, origin = sources.ids, "manifest"
    recorded = layouts.attributes(path).get("ids_digest")
    if digest(ids.tolist()) != recorded:
        ids, origin = _by_content(path, layout, sources, folder), sources.kind
    elif _most_differ(path, layout, sources):
        raise OtherStoreError(
            f"{path}: by their sizes in bytes, its {sources.kind} are not those of the manifest "
            f"and zarr.json; put this store's own {COPY} and its manifest there, or extract again"
        )
    atomic.write_bytes(ledger.shard_file(path, "ids", 0, 1), ids.astype("<i8").tobytes())
    if digest(ids.tolist()) != recorded:
        tree = parsing.from_json((path / "zarr.json").read_text(encoding="utf-8"))
        tree["attributes"]["ids_digest"] = digest(ids.tolist())
        with records.rewriting(path, "zarr.json", COPY):
            for name in ("zarr.json", COPY):
                atomic.write_text(path / name, json.dumps(tree, indent=2))
    return f"ids restored from the {origin}"


def _most_differ(path: Path, layout: StoreLayout, sources: Sources) -> bool:
    """Whether most features were made from files of other sizes than the manifest has; a few may
    have been replaced.
    """
    sizes, differ, known = sources.sizes, 0, 0
    for shard, entry in ledger.readable(path, layout).items():
        before, current = ledger.file_sizes(path, entry, layout), sizes[layout.places(shard)]
        compared = (before != 0) & (before != NO_FILE) & (current != NO_FILE)
        known, differ = (
            known + int(compared.sum()),
            differ + int((compared & (before != current)).sum()),
        )
    return 2 * differ > known


def _by_content(
    path: Path, layout: StoreLayout, sources: Sources, folder: Path | None
) -> np.ndarray:
    rows: dict[str, list[int]] = {}
    for row, checksum in ledger.sources(path, layout).items():
        rows.setdefault(checksum, []).append(row)
    if not layout.sizes or not rows:
        raise StoreError(
            f"{path}: its ids are lost, and the manifest is another one; put that manifest back "
            "with which it was made, or extract again"
        )
    ids = np.full(layout.total, layouts.UNUSED)
    for number, checksum in zip(
        sources.ids, sources.read_checksums(range(len(sources.ids)), folder), strict=True
    ):
        if free := rows.get(checksum, []):
            ids[free.pop()] = number
    return ids


def _entry(
    path: Path,
    layout: StoreLayout,
    shard: int,
    sources: Sources,
    folder: Path | None,
    made_from: Mapping[str, Any],
) -> ledger.LedgerEntry | None:
    """Make a shard's entry from its files; None if they are incomplete, or do not fit the
    manifest.
    """
    contents, rows = shard_file.read(path, layout, shard), layout.rows(shard)
    if contents.arrays.keys() != layout.arrays().keys():
        return None
    status, sizes = contents.arrays["status"], contents.arrays["bytes"]
    place_of_id = layout.find(ledger.column(path, "ids"), sources.ids)
    place_of = {row: place for place, row in enumerate(place_of_id.tolist()) if row in rows}
    done = {
        row: place for row, place in place_of.items() if status[row - rows.start] == layouts.DONE
    }
    current = sources.sizes[list(done.values())]
    failed = (rows.start + np.flatnonzero(status == layouts.FAILED)).tolist()
    if ledger.other_files(sizes[[row - rows.start for row in done]], current).any() or list(
        verify.impossible(layout, rows, contents.arrays, failed)
    ):
        return None
    checksums = (
        [""] * len(done)
        if imported(made_from)
        else sources.read_checksums(list(done.values()), folder)
    )
    file = path / "failures.csv"  # names each by its place in the manifest
    text = (
        file.read_text(encoding="utf-8", errors="replace").replace("\0", "")
        if file.is_file()
        else ""
    )
    reasons = {
        line[0]: line[2] for line in csv.reader(io.StringIO(text, newline="")) if len(line) == 3
    }
    return ledger.LedgerEntry(
        shard,
        rows.start,
        len(rows),
        {row: reasons.get(str(place_of.get(row)), "the reason is lost") for row in failed},
        contents.checksums,
        {row: each for row, each in sorted(zip(done, checksums, strict=True)) if each},
        contents.values,
        maker(made_from),
    )

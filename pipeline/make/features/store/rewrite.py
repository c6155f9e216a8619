"""Rewrite a store from its own features: of the manifest's images alone, or with another dtype,
compressor or shard size.

The result is the store that one extraction of the manifest with these settings makes. No network
and no photograph is needed. The old store stays until its successor is complete, and a rewriting
that was killed is resumed.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipeline.foundation.files import atomic
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest.sources import of as sources_of
from pipeline.foundation.manifest.table import Manifest
from pipeline.make.features.store import ledger
from pipeline.make.features.store.layout import StoreError, StoreLayout
from pipeline.make.features.store.planning import Wanted, at_once, making
from pipeline.make.features.store.reader import FeatureStore
from pipeline.make.features.store.writer import Shard, write_failures, write_shard

AT_ONCE = 64  # rows that are read together
Progress = Callable[[int], object]


def rewrite(
    path: Path,
    manifest: Manifest,
    dtype: str | None = None,
    compressor: str | None = None,
    shard_images: int | None = None,
    progress: Progress = lambda rows: None,
) -> StoreLayout:
    """Rewrite a store with the manifest's images, clips or captions in their order."""
    with atomic.exclusive(path):
        atomic.put_back(path.resolve())
        store = FeatureStore(path).require(manifest)
        store.require_extracted(np.arange(len(store.rows)))
        if dtype == "float32" and store.layout.dtype == "float16":
            raise StoreError(
                f"{path}: holds float16, of which exact float32 cannot be made; extract or import again"
            )
        before = store.layout
        total = len(store.rows)
        sources = sources_of(manifest, before.kind)
        layout = replace(
            before,
            total=total,
            dtype=dtype or before.dtype,
            compressor=compressor or before.compressor,
            shard_rows=min(shard_images or before.shard_rows, total),
        )
        fingerprint = store.fingerprint
        if fingerprint.get("ids") != sources.digest:  # photographs or captions found by content
            fingerprint = {**fingerprint, "dataset": manifest.dataset, "ids": sources.digest}
        if layout != before or fingerprint != store.fingerprint:
            store.check(np.arange(total))
            wanted = Wanted(sources.ids, store.columns("bytes"), fingerprint, layout)
            todo = at_once(wanted)
            with making(path, wanted, todo, origin=store.path) as (successor, todo):
                _write(store, successor, wanted, todo.pending, progress)
                write_failures(successor, layout, sources.names)
    return layout


def _write(
    store: FeatureStore,
    successor: Path,
    wanted: Wanted,
    pending: list[int],
    progress: Progress,
) -> None:
    layout = wanted.layout
    made_from = digest(wanted.fingerprint)
    reasons: dict[int, str] = {}
    checksums: dict[int, str] = {}
    compared = []  # when photographs were last compared
    for entry in ledger.entries(store.path, store.layout):
        reasons |= entry.failed
        checksums |= entry.sources
        compared.append(ledger.file(store.path, entry.shard).stat().st_mtime_ns)
    for number in pending:
        shard = Shard.empty(layout, number)
        for start in range(0, len(shard.rows), AT_ONCE):
            rows = np.array(shard.rows[start : start + AT_ONCE], np.int64)
            done = store.done[rows]
            for row in rows[~done].tolist():
                shard.fail(row, reasons[int(store.rows[row])])
            rows = rows[done]
            features, counts = store.read(rows)
            arrays = {"counts": counts}
            for name in ("sizes", "bytes"):
                arrays[name] = store.columns(name)[rows]
            for name in layout.extras:
                arrays[name] = store.extra(name, rows)
            made_of = [checksums.get(row, "") for row in store.rows[rows].tolist()]
            shard.fill_several(rows, features, arrays, made_of)
        write_shard(successor, layout, shard, made_from)
        times = (min(compared), min(compared))
        os.utime(ledger.file(successor, number), ns=times)
        progress(len(shard.rows))

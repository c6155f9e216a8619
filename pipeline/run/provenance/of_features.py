"""The steps of one feature store behind a result: what made it, its bytes, its images, and their
photographs.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from pipeline.foundation.artefacts import artefact
from pipeline.foundation.files import blake
from pipeline.foundation.files.compared import Step
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.columns import PHOTOGRAPH
from pipeline.foundation.manifest.sources import of as sources_of
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.make.features import extractors
from pipeline.make.features.store import FeatureStore, ItemFormat, ledger, verify
from pipeline.make.features.store.writer import failures_csv

# What a feature network is built by.
BUILT_BY = ("torch", "torchvision", "timm")


def steps(path: Path, manifest: Manifest, row: int | None, whole: bool) -> Iterator[Step]:
    """Compare a feature store with what is recorded of it."""
    if not path.exists():
        return
    try:
        store = FeatureStore(path).require(manifest)
        if not extras.lacks("features", *BUILT_BY):
            yield _network(store)
        yield from verify.description(path, store.layout)
        yield from _failures(store, manifest)
        if store.layout.kind == "captions":
            row = None
        if whole or row is not None:
            yield from _shards(store, row)
    except InputError as error:
        yield Step(path, "the store", "readable", str(error))
        yield from artefact.verify(path)


def _network(store: FeatureStore) -> Step:
    """Build the network that made the features again."""
    try:
        built: str | None = extractors.rebuild(ItemFormat.of(store), same_weights=False).weights
    except InputError:  # the checkpoint is not on this machine
        built = None
    return Step(
        store.path, "weights of the network, built again", store.fingerprint["weights"], built
    )


def _failures(store: FeatureStore, manifest: Manifest) -> Iterator[Step]:
    """Compare the list of failed images with the ledger."""
    file = store.path / "failures.csv"
    if file.exists():
        names = sources_of(manifest, store.layout.kind).names
        text = failures_csv(store.path, store.layout, names, store.rows)[0]
        listed = file.read_bytes().decode("utf-8", "replace")
        yield Step(file, "digest of the list", digest(text), digest(listed))


def _shards(store: FeatureStore, row: int | None) -> Iterator[Step]:
    """With a row, compare each file of its shard; without, all files, a step for each that differs
    or one for all.
    """
    if row is not None:
        shard = int(store.rows[row]) // store.layout.shard_rows
        entry = ledger.read(store.path, shard)
        for name, (shape, _) in store.layout.arrays().items():
            file = ledger.shard_file(store.path, name, shard, len(shape) + 1)
            recorded = entry.checksums.get(name) if entry else "no ledger entry"
            checksum = blake.of_file(file) if file.exists() else None
            yield Step(file, f"BLAKE2b of shard {shard}, with image row {row}", recorded, checksum)
        return
    rows = np.arange(store.layout.total)
    wrong = list(verify.changed(store.path, rows))
    for file, recorded, found in wrong:
        yield Step(file, "BLAKE2b", recorded, found or None)
    if not wrong:
        same = verify.content(store.path, rows)
        yield Step(
            store.path,
            f"BLAKE2b of every file of its {counted(store.layout.shards, 'shard')}",
            same,
            same,
        )


def photographs(
    path: Path, manifest: Manifest, row: int | None, known: dict[GalleryFile, str]
) -> Iterator[Step]:
    """Compare one photograph or clip, or all in one step, with the checksums that a store holds."""
    try:
        store = FeatureStore(path).require(manifest)
        entries = ledger.entries(path, store.layout)
    except InputError:  # the store's own steps say it
        return
    if (
        "settings" not in store.fingerprint or store.layout.kind == "captions"
    ):  # the manifest itself has these
        return
    by_row = {each: checksum for entry in entries for each, checksum in entry.sources.items()}
    recorded = {image: by_row.get(each) for image, each in enumerate(store.rows.tolist())}
    rows = [each for each in np.flatnonzero(store.done).tolist() if row in (None, each)]
    gallery = manifest.gallery()
    files = {each: gallery[each] for each in rows}
    unread = [file for file in files.values() if file not in known]
    with ThreadPoolExecutor() as threads:  # hashing releases Python's lock
        checksums = zip(unread, threads.map(blake.if_there, unread), strict=True)
        known.update({file: checksum for file, checksum in checksums if checksum})
    whose = f", by {path.name}"
    wrong = [
        each
        for each in rows
        if recorded.get(each) is None or known.get(files[each]) != recorded[each]
    ]
    for each in wrong[:1] if row is None else rows:
        what = f"BLAKE2b of image {manifest.images['image_id'].iloc[each]}{whose}"
        yield Step(files[each].path, what, recorded.get(each), known.get(files[each]))
    by_manifest = manifest.images.get(PHOTOGRAPH, recorded)
    for each in [each for each in rows if by_manifest[each] != recorded.get(each)][:1]:
        yield Step(
            files[each].path,
            f"BLAKE2b by the manifest{whose}",
            recorded.get(each),
            by_manifest[each],
        )
    if row is None and not wrong:
        same = digest([recorded[each] for each in rows])
        yield Step(
            manifest.images_folder, f"BLAKE2b of {counted(len(rows), 'image')}{whose}", same, same
        )

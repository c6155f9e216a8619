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
            recorded: str | None = "no ledger entry"
            if entry:
                recorded = entry.checksums.get(name)
            checksum = None
            if file.exists():
                checksum = blake.of_file(file)
            yield Step(file, f"BLAKE2b of shard {shard}, with image row {row}", recorded, checksum)
        return
    rows = np.arange(store.layout.total)
    wrong = list(verify.changed(store.path, rows))
    for file, recorded, checksum in wrong:
        yield Step(file, "BLAKE2b", recorded, checksum or None)
    if not wrong:
        same = verify.content(store.path, rows)
        shards = counted(store.layout.shards, "shard")
        yield Step(store.path, f"BLAKE2b of every file of its {shards}", same, same)


def photographs(
    path: Path, manifest: Manifest, row: int | None, known: dict[GalleryFile, str]
) -> Iterator[Step]:
    """Compare one photograph or clip, or all in one step, with the checksums that a store holds."""
    try:
        store = FeatureStore(path).require(manifest)
        entries = ledger.entries(path, store.layout)
    except InputError:  # the store's own steps say it
        return
    # The manifest itself has these.
    if "settings" not in store.fingerprint or store.layout.kind == "captions":
        return
    by_row: dict[int, str] = {}
    for entry in entries:
        by_row |= entry.sources
    recorded = {image: by_row.get(at) for image, at in enumerate(store.rows.tolist())}
    rows = np.flatnonzero(store.done).tolist()
    if row is not None:
        rows = [image for image in rows if image == row]
    gallery = manifest.gallery()
    files = {image: gallery[image] for image in rows}
    unread = [file for file in files.values() if file not in known]
    with ThreadPoolExecutor() as threads:  # hashing releases Python's lock
        checksums = zip(unread, threads.map(blake.if_there, unread), strict=True)
        known.update({file: checksum for file, checksum in checksums if checksum})
    whose = f", by {path.name}"
    wrong = []
    for image in rows:
        if recorded.get(image) is None or known.get(files[image]) != recorded[image]:
            wrong.append(image)
    shown = rows
    if row is None:
        shown = wrong[:1]
    for image in shown:
        what = f"BLAKE2b of image {manifest.images['image_id'].iloc[image]}{whose}"
        yield Step(files[image].path, what, recorded.get(image), known.get(files[image]))
    by_manifest = manifest.images.get(PHOTOGRAPH, recorded)
    others = [image for image in rows if by_manifest[image] != recorded.get(image)]
    for image in others[:1]:
        what = f"BLAKE2b by the manifest{whose}"
        yield Step(files[image].path, what, recorded.get(image), by_manifest[image])
    if row is None and not wrong:
        same = digest([recorded[image] for image in rows])
        what = f"BLAKE2b of {counted(len(rows), 'image')}{whose}"
        yield Step(manifest.images_folder, what, same, same)

"""Commands on a feature store: check, rewrite and copy it; export it for other code bases."""

from __future__ import annotations

import os
from pathlib import Path

from pipeline.foundation.artefacts import Artefact, record as records
from pipeline.foundation.files import atomic, remote
from pipeline.foundation.files.compared import MATCHES
from pipeline.foundation.manifest import Manifest, croissant, dataset
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems import given
from pipeline.judge.systems.scores.layout import facts, is_store
from pipeline.make.features.store import (
    FeatureStore,
    StoreError,
    copying,
    croissant as store_card,
    ledger,
    read_header,
    verify,
)
from pipeline.make.features.store.export import FORMATS, export
from pipeline.make.features.store.layout import is_undescribed
from stages import terminal
from stages.commands.stores import (
    CopyOptions,
    ExportOptions,
    RewriteOptions,
    VerifyOptions,
)
from stages.progress import Progress, say

MOST_WORKERS = 8
REPAIR = "--repair removes what is damaged, so that the command that made the store makes it again"
AGAIN = "run the command that made the store again, which makes what is missing"
# The form of a card of a store or manifest, beside the formats of features.
CARD = "croissant"


def verify_store(paths: Paths, settings: Settings, options: VerifyOptions) -> None:
    """Check a store of features, or of scores and the files that these were given in; say what is
    wrong and where.

    repair: whether damaged shards of features, or a damaged description, are removed, so that the
        command that made the store makes them again.
    """
    if is_store(options.store):
        if options.repair:
            raise InputError(
                f"{options.store}: holds scores, which the command that made them makes again; leave out --repair"
            )
        _verify_scores(paths, options.store)
        return
    faults_of_description = _faults_of_description(options.store)
    for _, fault in faults_of_description:
        say(fault, err=False, colour=terminal.judged)
    if faults_of_description:
        if not options.repair:
            _, first_fault = faults_of_description[0]
            raise InputError(f"{first_fault}; {REPAIR}")
        _remove_description(options.store, {file.name for file, _ in faults_of_description})
        return
    header, _ = read_header(options.store)
    processes = options.processes or min(MOST_WORKERS, os.cpu_count() or 1)
    damaged = []
    with Progress("verify", "shard", header.shards) as bar:
        for shard, faults in verify.verify(options.store, processes):
            bar.update()
            for fault in faults:
                say(f"shard {shard}: {fault}", err=False)
            if faults:
                damaged.append(shard)
    shards = counted(header.shards, "shard")
    if not damaged:
        say(f"{options.store}: {shards}, all as written", err=False, colour=terminal.judged)
        return
    of_all = f"{len(damaged)} of {shards}"
    if not options.repair:
        raise InputError(f"{options.store}: damaged or missing: {of_all}; {REPAIR}")
    with atomic.exclusive(options.store):
        for shard in damaged:
            ledger.erase(options.store, shard)
        records.update(options.store, finished=False)
    say(f"{options.store}: {of_all} removed; {AGAIN}", err=False)


def _remove_description(store: Path, damaged: set[str]) -> None:
    """Remove the damaged files of a description, all but failures.csv together."""
    names = sorted((records.FILE, "zarr.json"))
    if damaged == {"failures.csv"}:
        names = ["failures.csv"]
    with atomic.exclusive(store):
        for name in names:
            (store / name).unlink(missing_ok=True)
    say(f"{store}: {' and '.join(names)} removed; {AGAIN}", err=False)


def _faults_of_description(store: Path) -> list[tuple[Path, str]]:
    """What is wrong with the files that describe a feature store: the file, and a line; StoreError
    if there is no store.
    """
    try:
        layout, fingerprint = read_header(store)
    except StoreError as error:
        if is_undescribed(store) or not (store / "ledger").is_dir():
            raise
        return [(store / "zarr.json", str(error))]
    if ledger.of_another_store(store, layout, fingerprint):
        fault = f"{store}: record.json is of another store than the shards, as their ledger says"
        return [(store / records.FILE, fault)]
    faults = []
    for step in verify.description(store, layout):
        if step.verdict != MATCHES:
            faults.append((step.path, f"{step.path}: {step.what} {step.verdict}"))
    return faults


def _verify_scores(paths: Paths, store: Path) -> None:
    existing = Artefact.open(store)
    steps = [*existing.verify(), *given.steps(facts(existing), paths.root)]
    wrong = [step for step in steps if step.verdict != MATCHES]
    for step in wrong:
        say(f"{step.path}: {step.what} {step.verdict}", err=False, colour=terminal.judged)
    files = counted(len(steps), "file")
    if wrong:
        raise InputError(f"{store}: {len(wrong)} of {files} are not as they were")
    say(f"{store}: {files}, all as written", err=False, colour=terminal.judged)


def rewrite_store(paths: Paths, settings: Settings, options: RewriteOptions) -> None:
    """Rewrite a feature store for its manifest as it is now, with another dtype, compressor or
    shard size.

    Neither a network nor photographs are needed.
    """
    from pipeline.make.features.store import rewrite  # and with it torch

    before = FeatureStore(options.store)
    table = options.manifest_file or paths.manifest(before.fingerprint["dataset"])
    manifest = Manifest.load(table)
    noun = before.layout.noun
    with Progress("rewrite", noun, len(before.rows)) as bar:
        layout = rewrite.rewrite(
            options.store,
            manifest,
            options.dtype,
            options.compressor,
            options.shard_images,
            bar.update,
        )
    fingerprint = FeatureStore(options.store).fingerprint
    if layout == before.layout and fingerprint == before.fingerprint:
        say(f"{options.store}: nothing to do", err=False)
        return
    left_out = before.layout.total - layout.total
    total = counted(layout.total, noun)
    shards = counted(layout.shards, "shard")
    said = f"{options.store}: {total} in {shards} of {layout.dtype}, compressor {layout.compressor}"
    if left_out:
        said += f"; {left_out:,} rows left out"
    if layout.dtype != before.layout.dtype:
        said += f"; features are rounded to {layout.dtype}: train again what was trained on them"
    elif fingerprint != before.fingerprint:
        said += f"; of the {noun}s of {fingerprint['dataset']} now"
    else:
        said += "; heads and scores that were made from it stay valid"
    say(said, err=False)


def copy_store(options: CopyOptions) -> None:
    """Copy a feature store (NAME.zarr) or a manifest (NAME.parquet) into an object store, or from
    there.
    """
    is_upload = remote.address(options.target) is not None
    is_download = remote.address(options.source) is not None
    if is_upload == is_download:
        raise InputError(
            "exactly one of SOURCE and TARGET must be in an object store, such as s3://bucket/region.zarr"
        )
    named = remote.address(options.target) or options.target
    for place in filter(remote.address, (options.source, options.target)):
        remote.require_whole(str(place), with_key=True)
    if options.source.suffix == ".parquet":
        Manifest.load(options.source).save(options.target)
        say(f"{named}: manifest copied", err=False)
        return
    local = options.target
    if is_upload:
        local = options.source
    with atomic.exclusive(local), Progress("copy", "shard") as bar:
        if is_upload:
            done = copying.upload(options.source, options.target, bar.reset, bar.update)
        else:
            done = copying.download(options.source, options.target, bar.reset, bar.update)
    said = "nothing to do"
    if done:
        said = f"{counted(done, 'shard')} copied"
    say(f"{named}: {said}", err=False)


def export_store(paths: Paths, settings: Settings, options: ExportOptions) -> None:
    """Write a split of a feature store as older code bases read it, or its card. Running again does
    nothing.
    """
    words = options.what
    if len(words) == 1:
        words = ("scan", *words)
    form, store = words[:2]
    forms = (*FORMATS, CARD)
    if form not in forms or len(words) > 2:
        raise InputError(
            f"expected [FORMAT] STORE, a format being one of {', '.join(forms)}, got "
            f"{' '.join(options.what)}"
        )
    if form == CARD:
        if options.split:
            raise InputError("a card in Croissant is of all splits; leave out --split")
        _describe(paths, paths.root / store, options.out, options.manifest_file)
        return
    features = FeatureStore(paths.root / store)
    table = options.manifest_file or paths.manifest(features.fingerprint["dataset"])
    manifest = Manifest.load(table)
    with Progress("export", "image") as bar:
        done = export(
            form,
            features,
            manifest,
            options.split,
            options.out,
            bar.reset,
            bar.update,
            root=paths.root,
        )
    say(f"{done.place}: {done.content}", *(f"  {note}" for note in done.notes), err=False)


def _describe(paths: Paths, place: Path, out: Path, manifest_file: Path | None) -> None:
    """Write the card of a feature store or of a manifest."""
    if remote.address(place):
        raise InputError(
            f"{place}: a card in Croissant has the digests of files of this machine; copy the store here"
        )
    if place.suffix == ".parquet":
        table = manifest_file or place
        manifest = Manifest.load(table)
        card = dataset(manifest.dataset, paths.root)
        name = manifest.dataset
        described = croissant.describe(manifest, card, table, out)
    else:
        store = FeatureStore(place)
        table = manifest_file or paths.manifest(store.fingerprint["dataset"])
        manifest = Manifest.load(table)
        card = dataset(manifest.dataset, paths.root)
        store.require(manifest)
        name = f"{manifest.dataset}-{place.stem}"
        described = store_card.describe(store, manifest, card, table, out)
    atomic.write_json(out / f"{name}.croissant.json", described)
    say(f"{out / name}.croissant.json: {place} in Croissant", err=False)

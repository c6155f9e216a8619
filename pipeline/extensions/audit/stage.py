"""What `pipeline audit` does, and what the card of a system says of its data set's splits."""

from __future__ import annotations

import os
import sys

from pipeline.extensions.audit import findings, fingerprints
from pipeline.extensions.audit.collection import Collection
from pipeline.extensions.audit.command import AuditOptions
from pipeline.foundation.files import atomic
from pipeline.foundation.manifest import SPLITS, Manifest
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from stages.progress import Progress, say

MOST = 10_000  # images of a data set whose photographs are compared for a card


def audit(paths: Paths, settings: Settings, options: AuditOptions) -> None:
    """Find images and captions that data sets A and B share, or the splits of A alone."""
    names = [name for name in (options.one, options.other) if name]
    collections = []
    for name in names:
        dataset, colon, split = name.partition(":")
        if colon and split not in SPLITS:
            raise InputError(
                f"{dataset}:{split}: expected a split of {', '.join(SPLITS)} after the colon"
            )
        table = Manifest.load(paths.manifest(dataset))
        collections.append(Collection.of(table, split or None))
    if options.other:
        _refuse_same_images(options.one, options.other)
    prints = []
    for images in collections:
        with Progress(f"read {images.name}", "image", len(images.files)) as bar:
            prints.append(fingerprints.take(images, os.cpu_count() or 1, bar.reach))
    both_prints = (prints[0], prints[-1])
    report = findings.compare(collections[0], collections[-1], both_prints, options.alike)
    name = "-".join(names).replace(":", "-")
    path = options.out or paths.root / "results" / f"audit-{name}.html"
    # exit code 1 would say something else
    with refusing(
        OSError, lambda error: f"{path}: {error.strerror or error}; choose another --out"
    ):
        atomic.write_text(path, report.page())
        atomic.write_json(path.with_suffix(".json"), report.as_json())
    say(*report.lines(), f"{path}: pairs side by side", err=False)
    sys.exit(1 if report.leaks else 0)


def _refuse_same_images(one: str, other: str) -> None:
    """Check that two names are not of one data set whole, or of one split."""
    first, _, part = one.partition(":")
    second, _, rest = other.partition(":")
    if first != second:
        return
    if not part or not rest or part == rest:
        raise InputError(
            f"{one} and {other} hold the same images by definition; name two splits, or {first} alone for "
            "its own splits"
        )


def across_splits(manifest: Manifest) -> list[str]:
    """What the splits of a data set have in common: copies of photographs, and equal captions."""
    every = Collection.of(manifest)
    if len(every.files) > MOST:
        return [
            f"Not compared: {manifest.dataset} has more than {MOST:,} images; see `pipeline audit "
            f"{manifest.dataset}`."
        ]
    with Progress(f"read {every.name}", "image", len(every.files)) as bar:
        prints = fingerprints.take(every, os.cpu_count() or 1, bar.reach)
    return findings.compare(every, every, (prints, prints), AuditOptions.alike).lines()

"""The card that `evaluate --card` writes."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.foundation.compute import made_with
from pipeline.foundation.files import atomic
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems import given
from pipeline.judge.systems.scores.items import Items
from pipeline.judge.systems.scores.system import System
from pipeline.run.report.page.card import Origin, write as write_card
from pipeline.run.report.split_checks import SPLIT_CHECKS
from stages.measure import Evaluation, MeasuredPool
from stages.progress import Progress, say


def write(
    path: Path,
    name: str,
    measured: MeasuredPool,
    numbers: Mapping[str, Any],
    evaluation: Evaluation,
) -> None:
    """Write the card of a measured pool. name: what the user calls its file; numbers: those that
    are printed.
    """
    part, metrics = measured.by_protocol[0].ranked[0]
    pool = part.system
    if pool.record:
        files = {pool.name: pool.reference.identity}
    else:
        files = given.named(name, evaluation.paths.root)[1]
    manifest = measured.manifest or _of_record(pool, evaluation.paths)
    items = Items()
    if manifest is not None:
        files |= {manifest.dataset: manifest.digest}
        if pool.has_ids:
            items = Items.of(pool, manifest, manifest.images_folder)
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    origin = Origin(command, made_with.today(), files, _across_splits(manifest))
    with Progress(f"card of {pool.name}", "step"):
        page = write_card(part, metrics, numbers, evaluation.settings, items, origin)
        atomic.write_text(path, page)
    say(f"{path}: the card of {pool.name}")


def _of_record(pool: System, paths: Paths) -> Manifest | None:
    """The manifest that a store was scored with, if the project still has it."""
    file = paths.manifest(pool.made_from.dataset)
    if not pool.made_from.dataset or not file.is_file():
        return None
    manifest = Manifest.load(file)
    return manifest if manifest.digest == pool.made_from.manifest else None


def _across_splits(manifest: Manifest | None) -> list[str] | None:
    """What the splits of a data set have in common, as extensions compare them; None without
    any.
    """
    if not SPLIT_CHECKS:
        return None
    lines: list[str] = []
    if manifest is not None:
        for check in SPLIT_CHECKS.values():
            lines += check(manifest)
    return lines

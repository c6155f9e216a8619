"""The numbers of each language's captions, and their mean, where a manifest says the captions' languages."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pipeline.evaluation.retrieval import Ids, Metrics, Protocol, Ties, rows_of
from pipeline.evaluation.retrieval.protocols import protocol
from pipeline.evaluation.statistics.image_hits import pack
from pipeline.evaluation.statistics.intervals import mean_recall
from pipeline.manifest import Manifest
from pipeline.manifest.table import LANGUAGE
from pipeline.settings import Evaluate
from pipeline.settings.paths import Paths
from pipeline.systems.scores import measured
from pipeline.systems.scores.layout import Progress, after
from pipeline.systems.scores.system import System


class Language(NamedTuple):
    """One language's captions, and the images that have one."""

    system: System  # the view of them
    rules: Protocol  # the protocol for this language
    images: Ids  # int64 [I'], their rows in the whole pool


def named(system: System, manifest: Manifest | None) -> System:
    """Name the language of each caption."""
    if manifest is None or LANGUAGE not in manifest.columns or not system.has_ids:
        return system
    system.require_manifest(manifest)
    table = manifest.rows(["caption_id", LANGUAGE])
    rows = rows_of(table["caption_id"].to_numpy(), system.caption_ids)
    return replace(system, languages=table[LANGUAGE].to_numpy()[rows].astype(str))


def with_languages(system: System, paths: Paths) -> System:
    """Name the language of each caption of a store, where its record says that there are several."""
    if len(system.made_from.get("languages", ())) < 2:
        return system
    found = named(system, Manifest.load(paths.manifest(system.made_from["dataset"])))
    return found if found.languages is not None and len(np.unique(found.languages)) > 1 else system


def parts(system: System, rules: str | Protocol) -> dict[str, Language]:
    """Divide a system by language."""
    return {name: Language(view, protocol(rules).of_language(name), images)
            for name, (view, images, _) in system.by_language().items()}


def rank(every: Mapping[str, Language], ties: Ties, settings: Evaluate,
         progress: Progress = lambda images: None) -> dict[str, Metrics]:
    """Find every query's best right candidate in its language."""
    found, done = {}, 0
    for name, part in every.items():
        found[name] = measured.rank(part.system, part.rules, ties, settings, after(progress, done))
        done += len(part.images)
    return found


def images(every: Mapping[str, Language]) -> int:
    """Count the images that one pass through all languages reports to its `progress`."""
    return sum(len(part.images) for part in every.values())


def numbers(every: Mapping[str, Language], ranked: Mapping[str, Metrics], settings: Evaluate,
            progress: Progress = lambda images: None) -> dict[str, Any]:
    """Measure each language by itself: its captions, and the images that have one, are a pool of their own."""
    if not every:
        return {}
    told, done = {}, images(every)
    for name, part in every.items():
        report = after(progress, done - len(part.images))
        told[name] = _with_mean_recall(measured.numbers(part.system, ranked[name], part.rules, settings, report))
        done += len(part.images)
    mean, *interval = mean_recall({name: (part.images, ranked[name]) for name, part in every.items()})
    return {"languages": told, "mean_of_languages": {"mR": mean, "interval": {"mR": interval}}}


def image_hits(system: System, found: Metrics, every: Mapping[str, Language], ranked: Mapping[str, Metrics]
               ) -> dict[str, Any]:
    """The hits of each image as results keep them, of all captions and of each language's. found: of all captions."""
    by_language = {name: pack(ranked[name], part.system.image_ids, part.system.caption_ids)
                   for name, part in every.items()}
    return pack(found, system.image_ids, system.caption_ids) | ({"languages": by_language} if every else {})


def _with_mean_recall(numbers: dict[str, Any]) -> dict[str, Any]:
    interval = numbers["interval"] | {"mR": [end / 6 for end in numbers["interval"]["rsum"]]}
    return numbers | {"mR": numbers["rsum"] / 6, "interval": interval}

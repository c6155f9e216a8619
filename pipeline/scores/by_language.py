"""The numbers of each language's captions, and their mean, where a manifest says the captions' languages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pipeline.manifest import Manifest
from pipeline.manifest.table import LANGUAGE
from pipeline.paths import Paths
from pipeline.retrieval import Metrics, Protocol, Ties
from pipeline.retrieval.protocols import protocol
from pipeline.scores import measured
from pipeline.scores.candidates import Pool
from pipeline.scores.similarity_store import SimilarityStore
from pipeline.settings import Evaluate
from pipeline.statistics.languages import LanguagePool, Languages, divide, mean_recall


class Language(NamedTuple):
    """One language's captions, and the images that have one.

    Attributes:
        pool: Their scores.
        rules: The protocol for this language.
        part: What they are of the whole pool.
    """

    pool: Pool
    rules: Protocol
    part: LanguagePool


def named(pool: Pool, manifest: Manifest | None) -> Pool:
    """Name the language of each caption."""
    if manifest is None or LANGUAGE not in manifest.table.columns or pool.caption_ids is None:
        return pool
    pool.require_manifest(manifest)
    table = manifest.table
    language = dict(zip(table["caption_id"].tolist(), table[LANGUAGE].tolist(), strict=True))
    return replace(pool, languages=np.array([language[caption] for caption in pool.caption_ids.tolist()]))


def languages_of(store: SimilarityStore, paths: Paths) -> Languages | None:
    """Look up the languages of a store's captions."""
    if len(store.made_from.get("languages", ())) < 2:
        return None
    found = named(Pool.of_store(store), Manifest.load(paths.manifest(store.made_from["dataset"]))).languages
    return found if found is not None and len(np.unique(found)) > 1 else None


def parts(pool: Pool, rules: str | Protocol) -> dict[str, Language]:
    """Divide a pool by language."""
    if pool.languages is None:
        return {}
    found = {}
    for name, part in divide(pool.scores, pool.truth, pool.languages).items():
        own = replace(pool, scores=part.scores, caption_image=part.relevance.owner, languages=None,
                      relevance=None if pool.relevance is None else part.relevance,
                      image_ids=None if pool.image_ids is None else pool.image_ids[part.images],
                      caption_ids=None if pool.caption_ids is None else pool.caption_ids[part.captions])
        found[name] = Language(own, protocol(rules).of_language(name), part)
    return found


def rank(every: Mapping[str, Language], ties: Ties, settings: Evaluate,
         progress: measured.Progress = lambda images: None) -> dict[str, Metrics]:
    """Find every query's best right candidate in its language."""
    found, done = {}, 0
    for name, part in every.items():
        found[name] = measured.rank(part.pool, part.rules, ties, settings, partial(_reached, progress, done))
        done += len(part.part.images)
    return found


def images(every: Mapping[str, Language]) -> int:
    """Count the images that one pass through all languages reports to its `progress`."""
    return sum(len(part.part.images) for part in every.values())


def numbers(every: Mapping[str, Language], ranked: Mapping[str, Metrics], settings: Evaluate,
            progress: measured.Progress = lambda images: None) -> dict[str, Any]:
    """Measure each language by itself: its captions, and the images that have one, are a pool of their own."""
    if not every:
        return {}
    told, done = {}, images(every)
    for name, part in every.items():
        report = partial(_reached, progress, done - len(part.part.images))
        told[name] = _with_mean_recall(measured.numbers(part.pool, ranked[name], part.rules, settings, report))
        done += len(part.part.images)
    mean, *interval = mean_recall({name: (part.part, ranked[name]) for name, part in every.items()})
    return {"languages": told, "mean_of_languages": {"mR": mean, "interval": {"mR": interval}}}


def measure(pool: Pool, rules: str | Protocol, ties: Ties, settings: Evaluate,
            progress: measured.Progress = lambda images: None) -> dict[str, Any]:
    """Divide, rank and measure at once."""
    every = parts(pool, rules)
    return numbers(every, rank(every, ties, settings, progress), settings, progress)


def _with_mean_recall(numbers: dict[str, Any]) -> dict[str, Any]:
    interval = numbers["interval"] | {"mR": [end / 6 for end in numbers["interval"]["rsum"]]}
    return numbers | {"mR": numbers["rsum"] / 6, "interval": interval}


def _reached(progress: measured.Progress, before: int, done: int) -> None:
    progress(before + done)

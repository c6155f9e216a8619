"""The numbers of each language's captions, and their mean, where a manifest says the captions' languages."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pipeline.errors import InputError
from pipeline.manifest import Manifest
from pipeline.manifest.table import LANGUAGE
from pipeline.retrieval import Protocol, Ties
from pipeline.retrieval.languages import divide, mean_recall
from pipeline.retrieval.protocols import protocol
from pipeline.scores import measured
from pipeline.scores.candidates import Pool
from pipeline.settings import Evaluate


def named(pool: Pool, manifest: Manifest) -> Pool:
    """Name the language of each caption.

    Args:
        pool: The scores.
        manifest: The manifest that they are of.

    Returns:
        The pool with its languages; as it was, if the manifest has none or the captions' ids are unknown.

    Raises:
        InputError: If it is not the manifest that the scores are of.
    """
    table = manifest.table
    if LANGUAGE not in table.columns or pool.caption_ids is None:
        return pool
    if pool.made_from.get("manifest", manifest.digest) != manifest.digest:
        raise InputError(f"{pool.name}: was scored for another manifest of {manifest.dataset} than there is now; score "
                         "again")
    language = dict(zip(table["caption_id"].tolist(), table[LANGUAGE].tolist(), strict=True))
    return replace(pool, languages=np.array([language[caption] for caption in pool.caption_ids.tolist()]))


def measure(pool: Pool, rules: str | Protocol, ties: Ties, settings: Evaluate,
            progress: measured.Progress = lambda images: None) -> dict[str, Any]:
    """Measure each language by itself: its captions, and the images that have one, are a pool of their own.

    Args:
        pool: The scores.
        rules: A protocol or its name.
        ties: How ties are counted.
        settings: As for `measured.measure`.
        progress: Called with the number of images ranked so far, those of all languages together.

    Returns:
        JSON values: `languages`, in each the numbers of `measured.measure` and mR, the mean of the six recalls; and
        `mean_of_languages`. {} for a pool without languages, and where other images than the captions' own are right.

    Raises:
        InputError: If the protocol is not of these languages.
    """
    if not _has_languages(pool):
        return {}
    assert pool.languages is not None
    found, told, done = {}, {}, 0
    for name, part in divide(pool.scores, pool.caption_image, pool.languages).items():
        own = replace(pool, scores=part.scores, caption_image=part.caption_image, languages=None,
                      image_ids=None if pool.image_ids is None else pool.image_ids[part.images],
                      caption_ids=None if pool.caption_ids is None else pool.caption_ids[part.captions])
        by, report = protocol(rules).of_language(name), partial(_reached, progress, done)
        ranked = measured.rank(own, by, ties, settings, report)
        found[name] = (part, ranked)
        told[name] = _with_mean_recall(measured.numbers(own, ranked, by, settings, report))
        done += measured.passes(settings) * len(part.images)
    mean, *interval = mean_recall(found)
    return {"languages": told, "mean_of_languages": {"mR": mean, "interval": {"mR": interval}}}


def _with_mean_recall(numbers: dict[str, Any]) -> dict[str, Any]:
    interval = numbers["interval"] | {"mR": [end / 6 for end in numbers["interval"]["rsum"]]}
    return numbers | {"mR": numbers["rsum"] / 6, "interval": interval}


def _reached(progress: measured.Progress, before: int, done: int) -> None:
    progress(before + done)


def summed_images(pool: Pool, settings: Evaluate) -> int:
    """Count the images that `measure` reports to its `progress`.

    Args:
        pool: The scores.
        settings: As for `measure`.

    Returns:
        Their number over all languages and passes; 0 for a pool without languages.
    """
    if not _has_languages(pool):
        return 0
    assert pool.languages is not None
    pairs = set(zip(pool.languages.tolist(), pool.caption_image.tolist(), strict=True))
    return measured.passes(settings) * len(pairs)


def _has_languages(pool: Pool) -> bool:
    return pool.languages is not None and pool.relevance is None

"""The languages of a pool's captions, from their manifest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.errors import InputError
from pipeline.manifest import Manifest
from pipeline.manifest.table import LANGUAGE
from pipeline.scores.candidates import Pool


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

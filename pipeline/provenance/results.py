"""An entry of results/metrics.json: what was measured of a system, how, and what made it, under one digest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.files.digest import digest
from pipeline.scores.similarity_store import SimilarityStore

BESIDE = ("made_from", "evaluated_with", "digest")
"""What stands in an entry beside the protocols and their numbers."""


def entry(made_from: Mapping[str, Any], evaluated_with: Mapping[str, Any], numbers: Mapping[str, Any]
          ) -> dict[str, Any]:
    """An entry with the digest of all that it says.

    Args:
        made_from: what the scores say of themselves, see `record.made_from`.
        evaluated_with: the settings by which the numbers, and their intervals, can be computed again.
        numbers: protocol -> its numbers.
    """
    said = {"made_from": dict(made_from), "evaluated_with": dict(evaluated_with), **numbers}
    return said | {"digest": digest(said)}


def protocols(found: Mapping[str, Any]) -> dict[str, Any]:
    """Protocol -> its numbers."""
    return {name: numbers for name, numbers in found.items() if name not in BESIDE}


def digest_of(found: Mapping[str, Any]) -> str:
    """The digest that an entry should have."""
    return digest({key: value for key, value in found.items() if key != "digest"})


def refuse_edited(path: Path, metrics: Mapping[str, Any], similarity: Callable[[str, str], Path]) -> list[str]:
    """Compare a file of results with itself and with what the scores that are there say of themselves. Reads no scores.

    Args:
        path: the file, for messages.
        metrics: what it holds.
        similarity: from a data set and a system's name to its similarity store, which need not be there.

    Returns:
        The systems that were measured before digests were recorded, of which nothing is known.

    Raises:
        InputError: an entry is not as it was written, or its scores were made again since.
    """
    unknown = []
    for name, found in metrics.items():
        if not isinstance(found, Mapping) or not isinstance(found.get("made_from"), Mapping):
            continue  # whoever reads the numbers says what is wrong with such a one
        made_from = found["made_from"]
        if "digest" not in found:
            unknown.append(name)
        elif found["digest"] != digest_of(found):
            raise InputError(f"{path}: the entry of {name} is not as it was measured; run `pipeline evaluate` again")
        store = similarity(str(made_from.get("dataset")), name)
        if store.exists() and SimilarityStore.open(store).made_from != made_from:
            raise InputError(f"{path}: {name} was scored again since; run `pipeline evaluate`")
    return unknown


def not_recorded(path: Path, unknown: list[str]) -> str:
    """One line on what `refuse_edited` could not compare; "" where there is none."""
    return f"{path}: not recorded for {', '.join(unknown)}: whether their numbers are as they were measured" \
        if unknown else ""

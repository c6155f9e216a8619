"""An entry of results/metrics.json: a system's numbers, how they were measured, what made them, and a digest."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.files.digest import digest
from pipeline.parts.errors import InputError
from pipeline.systems.scores.system import System

BESIDE = ("made_from", "evaluated_with", "digest")
"""What stands in an entry beside the protocols and their numbers."""


def entry(made_from: Mapping[str, Any], evaluated_with: Mapping[str, Any], numbers: Mapping[str, Any]
          ) -> dict[str, Any]:
    """Compose an entry.

    Args:
        made_from: The scores' record, see `record.made_from`.
        evaluated_with: The settings that are needed to compute the numbers and their intervals again.
        numbers: Protocol -> its numbers.

    Returns:
        The entry with a digest of all that it holds.
    """
    said = {"made_from": dict(made_from), "evaluated_with": dict(evaluated_with), **numbers}
    return said | {"digest": digest(said)}


def protocols(found: Mapping[str, Any]) -> dict[str, Any]:
    """Select the numbers of an entry.

    Args:
        found: The entry.

    Returns:
        Protocol -> its numbers.
    """
    return {name: numbers for name, numbers in found.items() if name not in BESIDE}


def headline(found: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The numbers that a reader looks at first.

    Args:
        found: The content of results/metrics.json.

    Returns:
        System -> {"RSUM": ..., "i2t R@1": ..., ...}, in percent; with captions in several languages, mR of each and
        the mean of these. A split other than `test` and a protocol other than `all` end the system's name. DVC sorts
        columns by name: with the space, R@5 comes before R@10.
    """
    return {_named(name, measured["made_from"]["split"], protocol): {"RSUM": numbers["rsum"]} | {
        f"{way} R@{k}": numbers[way][f"r{k}"] for way in ("i2t", "t2i") for k in (1, 5, 10)} | _by_language(numbers)
        for name, measured in found.items() for protocol, numbers in protocols(measured).items()}


def _named(name: str, split: str, protocol: str) -> str:
    return "-".join((name, *[split] * (split != "test"), *[protocol] * (protocol != "all")))


def _by_language(numbers: Mapping[str, Any]) -> dict[str, float]:
    mean = {"mR": numbers["mean_of_languages"]["mR"]} if "languages" in numbers else {}
    return {f"{language} mR": found["mR"] for language, found in numbers.get("languages", {}).items()} | mean


def digest_of(found: Mapping[str, Any]) -> str:
    """Compute the digest that an entry must have."""
    return digest({key: value for key, value in found.items() if key != "digest"})


def refuse_edited(path: Path, metrics: Mapping[str, Any], similarity: Callable[[str, str, str], Path]) -> list[str]:
    """Compare a file of results with its own digests and with the records of the scores. No scores are read.

    Args:
        path: The file, for messages.
        metrics: Its content.
        similarity: From a data set, a system's name and a split to its similarity store, which need not exist.

    Returns:
        The systems that were measured before digests were recorded.

    Raises:
        InputError: If an entry was changed, or its scores were made again since.
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
        store = similarity(str(made_from.get("dataset")), name, str(made_from.get("split")))
        if store.exists() and System.open(store).made_from != made_from:
            raise InputError(f"{path}: {name} was scored again since; run `pipeline evaluate`")
    return unknown


def not_recorded(path: Path, unknown: list[str]) -> str:
    """Tell the user which systems `refuse_edited` could not compare.

    Args:
        path: The file of results.
        unknown: The systems.

    Returns:
        One line; "" if there is none.
    """
    return f"{path}: not recorded for {', '.join(unknown)}: whether their numbers are as they were measured" \
        if unknown else ""

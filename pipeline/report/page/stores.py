"""What made the feature stores, and which images failed."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.files.parsing import from_json
from pipeline.store.layout import read_header


@dataclass(frozen=True)
class Failure:
    """An image without features.

    Attributes:
        store: The feature.
        row: Its row in the store.
        file: Its file name.
        reason: Why it has no features.
    """

    store: str
    row: int
    file: str
    reason: str


def failures(stores: Mapping[str, Path]) -> list[Failure]:
    """Read which images failed.

    Args:
        stores: Feature -> its store.

    Returns:
        The rows of every store's failures.csv.

    Raises:
        InputError: If such a file cannot be read.
    """
    found = []
    for name, path in stores.items():
        try:
            with (path / "failures.csv").open(encoding="utf-8", newline="") as file:
                found += [Failure(name, int(row["row"]), row["file"], row["reason"]) for row in csv.DictReader(file)]
        except FileNotFoundError:
            continue
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{path}/failures.csv: not readable; run `pipeline extract` again") from None
    return found


def made_from(path: Path) -> dict[str, Any]:
    """What made a store.

    Args:
        path: The store.

    Returns:
        Its fingerprint, the fingerprint's digest, sizes, and the versions of the libraries that made it.

    Raises:
        StoreError: If there is no store, or its fingerprint was edited.
    """
    read_header(path)
    attributes = from_json((path / "zarr.json").read_text(encoding="utf-8"))["attributes"]
    return {key: attributes[key] for key in ("fingerprint", "fingerprint_digest", "layout", "made_with")
            if key in attributes}

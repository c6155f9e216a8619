"""Digests of the arrays in a store of scores or vectors, taken when they are written and compared when they are read.

The digests stand in `made_from`, under "contents", and so in everything that is made from the store. A digest is over
the array's files, including its metadata. The arrays are stored without a codec, are written once and never divided
anew, so the files' bytes determine the array's values, and comparing them needs nothing but a hash.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.files.digest import of_files, of_folder

KEY = "contents"


def of(store: Path, leave_out: Collection[str] = ()) -> dict[str, str]:
    """Digest a store's arrays."""
    return {file.parent.name: of_folder(file.parent) for file in sorted(store.glob("*/zarr.json"))
            if file.parent.name not in leave_out}


def changed(store: Path, made_from: Mapping[str, Any], leave_out: Collection[str] = ()) -> list[str] | None:
    """Compare a store's arrays with the recorded digests."""
    recorded = made_from.get(KEY)
    if not isinstance(recorded, Mapping):
        return None
    found = of(store, leave_out)
    return [name for name in sorted({*recorded, *found} - {*leave_out}) if recorded.get(name) != found.get(name)]


def require(store: Path, made_from: Mapping[str, Any], leave_out: Collection[str] = ()) -> None:
    """Check a store's arrays. A store without recorded digests is accepted."""
    if wrong := changed(store, made_from, leave_out):
        raise InputError(f"{store}/{wrong[0]}: has changed since it was written; run `pipeline score` or `pipeline "
                         "ensemble` again")


def require_vectors(store: Path, made_from: Mapping[str, Any], arrays: Iterable[str],
                    digests: Callable[[Iterable[Path]], Iterable[str]] = of_files) -> None:
    """Check those arrays of a store from which vectors are read. A store without recorded digests is accepted."""
    recorded = made_from.get(KEY)
    if not isinstance(recorded, Mapping):
        return
    for name in arrays:
        if recorded.get(name) != of_folder(store / name, digests):
            command = "score" if (store / "similarity").exists() else "embed"
            raise InputError(f"{store}/{name}: has changed since it was written; run `pipeline {command}` again")

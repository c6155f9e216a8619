"""What a store of scores or vectors holds: a digest of each array, taken when it is written, compared when it is read.

The digests stand in `made_from`, under "contents", and so in everything that is made from the store: what is changed
afterwards is seen from there. A digest is of the array's files as they are, its metadata among them. The arrays are
stored without a codec, are written once by one writer and never cut again; so the bytes of the files say what the array
holds, and reading them needs nothing but a hash.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.files.digest import of_folder

KEY = "contents"


def of(store: Path, leave_out: Collection[str] = ()) -> dict[str, str]:
    """Array -> SHA-256 over its files, but for those to leave out."""
    return {file.parent.name: of_folder(file.parent) for file in sorted(store.glob("*/zarr.json"))
            if file.parent.name not in leave_out}


def changed(store: Path, made_from: Mapping[str, Any], leave_out: Collection[str] = ()) -> list[str] | None:
    """The arrays that are not as they were written, lost ones and new ones among them; [] where all are.

    None where the store does not say: it was written before stores did. leave_out: arrays that are not looked at.
    """
    recorded = made_from.get(KEY)
    if not isinstance(recorded, Mapping):
        return None
    found = of(store, leave_out)
    return [name for name in sorted({*recorded, *found} - {*leave_out}) if recorded.get(name) != found.get(name)]


def require(store: Path, made_from: Mapping[str, Any], leave_out: Collection[str] = ()) -> None:
    """Raises InputError where an array is not as it was written. A store that does not say how it was is taken."""
    if wrong := changed(store, made_from, leave_out):
        raise InputError(f"{store}/{wrong[0]}: is not what was written there; run `pipeline score` or `pipeline "
                         "ensemble` again")

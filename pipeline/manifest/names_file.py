"""HGR's lists of clips: {trn,val,tst}_names.npy, an array of text each."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipeline.parts.errors import InputError

SPLITS = {"train": "trn", "val": "val", "test": "tst"}
FOLDER = "public_split"


def names_of(path: Path) -> list[str]:
    """Read a list of clips. Nothing is unpickled: the clips' names, in order."""
    try:
        found = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{path}: no such list of clips") from None
    except (ValueError, OSError, EOFError):
        raise InputError(f"{path}: expected an array of text without pickled objects") from None
    if found.dtype.kind != "U" or found.ndim != 1:
        raise InputError(f"{path}: expected a list of names, got {found.dtype} {list(found.shape)}")
    return [str(name) for name in found]


def splits_of(folder: Path) -> dict[str, list[str]]:
    """Read the lists of all splits: split -> names in order; a split whose file is not there is left out."""
    files = {split: folder / f"{short}_names.npy" for split, short in SPLITS.items()}
    return {split: names_of(file) for split, file in files.items() if file.is_file()}

"""HGR's captions (Chen et al., CVPR 2020), of MSR-VTT, VATEX and others: annotation/RET/ref_captions.json.

The root holds the folders `annotation/RET` and `public_split`. Captions are as HGR reads them: words between blanks.
Beside them lie their role graphs, if the folder has them.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.manifest import role_graphs
from pipeline.manifest.reader import Reader, json_of
from pipeline.manifest.table import ROLE_GRAPH
from pipeline.parts.errors import InputError

# HGR's lists of clips: {trn,val,tst}_names.npy, an array of text each.
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


CAPTIONS = Path("annotation", "RET", "ref_captions.json")


def read(path: Path) -> pd.DataFrame:
    """Read clips and captions.

    It gives a row a caption, clips in the order of the splits' lists; a clip's file is its name with .mp4. With role
    graphs, the column `role_graph`.
    """
    captions, splits = json_of(path / CAPTIONS), splits_of(path / FOLDER)
    if not splits:
        raise InputError(f"{path / FOLDER}: expected trn_names.npy, val_names.npy and tst_names.npy")
    if not isinstance(captions, dict):
        raise InputError(f"{path / CAPTIONS}: expected a list of captions for each name")
    rows = []
    for number, (split, name) in enumerate((split, name) for split, names in splits.items() for name in names):
        own = captions.get(name)
        if not isinstance(own, list) or not own or not all(isinstance(caption, str) for caption in own):
            raise InputError(f"{path / CAPTIONS}: {name!a} of the split {split} has no list of captions")
        rows += [(number, f"{name}.mp4", split, caption) for caption in own]
    table = pd.DataFrame(rows, columns=["image_id", "file", "split", "caption"])
    if (path / role_graphs.FILE).is_file():
        table[ROLE_GRAPH] = role_graphs.read(path / role_graphs.FILE, table["caption"])
    return table.assign(caption_id=range(len(table)), kind="video")


READER = Reader(f"a folder with HGR's {CAPTIONS}", lambda path: (path / CAPTIONS).is_file(), read,
                names_every_image=False)

"""HGR's captions (Chen et al., CVPR 2020), of MSR-VTT, VATEX and others, as annotations.

The root holds the folders `annotation/RET`, with ref_captions.json, and `public_split`. Captions
are as HGR reads them: words between blanks. Beside them are their role graphs, if the folder has
them. A clip's file is its name with .mp4.
"""

from pathlib import Path
from typing import TypeGuard

import pandas as pd

from pipeline.extensions.hgr import role_graphs
from pipeline.foundation.manifest.reader import Reader, Source, members_of, table_of
from pipeline.foundation.manifest.text_file import TextFile
from pipeline.foundation.manifest.videos import FOLDER, splits_of
from pipeline.foundation.parts.errors import InputError, refusing

HGR_CAPTIONS = Path("annotation", "RET", "ref_captions.json")


def hgr(source: Source) -> pd.DataFrame:
    """Read HGR's captions: clips in the order of the splits' lists; with role graphs, the column
    `role_graph`.
    """
    path = source.path
    splits = splits_of(path / FOLDER)
    if not splits:
        raise InputError(
            f"{path / FOLDER}: expected trn_names.npy, val_names.npy and tst_names.npy"
        )
    has_graphs = (path / role_graphs.FILE).is_file()
    graphs = f"; role graphs in {role_graphs.FILE.name}" if has_graphs else ""
    source.say(
        f"{path}: read as HGR's captions, {HGR_CAPTIONS.name}, captions by the clip's name; "
        f"{', '.join(splits)} by {FOLDER}{graphs}"
    )
    with refusing(KeyError, f"{path / HGR_CAPTIONS}: expected a list of captions for each name"):
        captions = dict(members_of(TextFile(path / HGR_CAPTIONS)))
    clips: list[tuple[int, str, str, list[str]]] = []
    for split, names in splits.items():
        for name in names:
            of_clip = captions.get(name)
            if not _is_captions(of_clip):
                raise InputError(
                    f"{path / HGR_CAPTIONS}: {name!a} of the split {split} has no list of captions"
                )
            clips.append((len(clips), f"{name}.mp4", split, of_clip))
    table = table_of(clips).assign(kind="video")
    if has_graphs:
        table[role_graphs.COLUMN] = role_graphs.read(path / role_graphs.FILE, table["caption"])
    return table


def _is_captions(value: object) -> TypeGuard[list[str]]:
    """Whether a value is a list of text that is not empty."""
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(caption, str) for caption in value)


HGR = Reader(
    f"a folder with HGR's {HGR_CAPTIONS}", lambda path: (path / HGR_CAPTIONS).is_file(), hgr
)

"""VATEX (Wang et al. 2019): the organisers' JSON, English captions.

The root is a folder with vatex_training_v1.0.json and vatex_validation_v1.0.json. HGR and VSE∞ cut the 3,000 clips of
the second into 1,500 for val and 1,500 for test; which, HGR's lists say: public_split/{val,tst}_names.npy in the same
folder. Without these lists the first half is val and the second test, which is not the papers' split.
"""

import re
from pathlib import Path

import pandas as pd

from pipeline.files.parsing import text
from pipeline.manifest.hgr import FOLDER, splits_of
from pipeline.manifest.reader import Reader, json_of
from pipeline.parts.errors import InputError

TRAINING, VALIDATION = "vatex_training_v1.0.json", "vatex_validation_v1.0.json"
CAPTIONS = "enCap"


def read(path: Path) -> pd.DataFrame:
    """Read clips and captions: a row a caption; a clip's file is its videoID with .mp4."""
    train, held_out = _clips(path / TRAINING), _clips(path / VALIDATION)
    listed, half = splits_of(path / FOLDER), len(held_out) // 2
    names = list(held_out)
    cut = {split: listed.get(split, default) for split, default in (("val", names[:half]), ("test", names[half:]))}
    if strange := {name for split in cut.values() for name in split} - held_out.keys():
        raise InputError(f"{path / FOLDER}: lists {min(strange)!a}, which {VALIDATION} does not have")
    clips = [("train", name, train[name]) for name in train]
    clips += [(split, name, held_out[name]) for split in ("val", "test") for name in cut[split]]
    rows = [(number, f"{name}.mp4", split, caption)
            for number, (split, name, captions) in enumerate(clips) for caption in captions]
    table = pd.DataFrame(rows, columns=["image_id", "file", "split", "caption"])
    return table.assign(caption_id=range(len(table)), kind="video")


def _clips(path: Path) -> dict[str, list[str]]:
    """Name -> English captions."""
    try:
        return {_name(clip["videoID"], path): [text(caption) for caption in clip[CAPTIONS]] for clip in json_of(path)}
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: not VATEX's layout, a list of videoID and {CAPTIONS} ({type(error).__name__}: "
                         f"{error})") from None


def _name(name: object, path: Path) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"[\w-]+", name):
        raise InputError(f"{path}: expected a videoID of letters, digits, _ and -, got {str(name)[:40]!a}")
    return name


READER = Reader(f"a folder with VATEX's {TRAINING}", lambda path: (path / TRAINING).is_file(), read,
                names_every_image=False)

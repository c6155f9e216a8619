"""MSR-VTT (Xu et al. 2016): the organisers' JSON, and the split "1k-A" of JSFusion (Yu et al. 2018).

The root is a folder with train_val_videodatainfo.json and test_videodatainfo.json, or with one JSON of all clips such
as MSRVTT_data.json. Where MSRVTT_JSFUSION_test.csv lies beside them, its 1,000 clips with the caption that it names are
the test split; train are all others but the official val, which that split's users train on too.
"""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.files.parsing import text
from pipeline.manifest.reader import Reader, json_of, text_of
from pipeline.parts.errors import InputError

SPLIT_OF = {"train": "train", "validate": "val", "test": "test"}
PAIR = ("train_val_videodatainfo.json", "test_videodatainfo.json")
WHOLE = ("MSRVTT_data.json", "videodatainfo_2017.json", "videodatainfo.json")
JSFUSION = "MSRVTT_JSFUSION_test.csv"


def read(path: Path) -> pd.DataFrame:
    """Read clips and captions.

    It gives a row a caption, clips in the order of their numbers; a clip's file is its id with .mp4.
    """
    splits: dict[str, str] = {}
    captions: dict[str, list[str]] = {}
    for file in _files(path):
        _add(file, splits, captions)
    chosen = path / JSFUSION
    if path.is_dir() and chosen.is_file():
        _choose(chosen, splits, captions)
    rows = [(_number(video, path), f"{video}.mp4", splits[video], caption)
            for video in sorted(splits, key=lambda video: _number(video, path)) for caption in captions.get(video, ())]
    table = pd.DataFrame(rows, columns=["image_id", "file", "split", "caption"])
    return table.assign(caption_id=range(len(table)), kind="video")


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    for names in (PAIR, *((name,) for name in WHOLE)):
        if all((path / name).is_file() for name in names):
            return [path / name for name in names]
    raise InputError(f"{path}: expected {' and '.join(PAIR)}, or {WHOLE[0]}")


def _add(file: Path, splits: dict[str, str], captions: dict[str, list[str]]) -> None:
    tree = json_of(file)
    try:
        splits |= {text(video["video_id"]): SPLIT_OF[video["split"]] for video in tree["videos"]}
        for sentence in tree["sentences"]:
            captions.setdefault(text(sentence["video_id"]), []).append(text(sentence["caption"]))
    except (KeyError, TypeError) as error:
        raise InputError(f"{file}: not MSR-VTT's layout, with lists videos and sentences ({type(error).__name__}: "
                         f"{error})") from None
    if strange := captions.keys() - splits.keys():
        raise InputError(f"{file}: has captions of {min(strange)!a}, which is none of its videos")


def _choose(file: Path, splits: dict[str, str], captions: dict[str, list[str]]) -> None:
    """Make the clips of JSFusion's list the test split, with one caption each, and train on the rest."""
    lines: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(text_of(file))))
    if not lines or not {"video_id", "sentence"} <= lines[0].keys():
        raise InputError(f"{file}: expected the columns video_id and sentence")
    if None in (short := [line[name] for line in lines for name in ("video_id", "sentence")]):
        raise InputError(f"{file}, row {short.index(None) // 2 + 1}: a field is missing")
    test = {line["video_id"]: line["sentence"] for line in lines}
    if strange := test.keys() - splits.keys():
        raise InputError(f"{file}: names {min(strange)!a}, which is none of the videos")
    for video, split in splits.items():
        splits[video] = "test" if video in test else "train" if split == "test" else split
    captions |= {video: [sentence] for video, sentence in test.items()}


def _number(video: str, path: Path) -> int:
    found = re.fullmatch(r"video(\d{1,18})", video)
    if found is None:
        raise InputError(f"{path}: expected clips called video0, video1 and so on, got {video[:40]!a}")
    return int(found[1])


def _recognises(path: Path) -> bool:
    if path.is_dir():
        return any((path / name).is_file() for name in (*PAIR, *WHOLE))
    return path.suffix == ".json" and path.is_file() and b'"video_id"' in path.open("rb").read(100_000)


READER = Reader("MSR-VTT's JSON", _recognises, read, names_every_image=False)

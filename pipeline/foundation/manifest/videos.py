"""Videos with captions: MSR-VTT and VATEX as their organisers publish them, and HGR's lists of
their clips.

MSR-VTT (Xu et al. 2016): the root is a folder with train_val_videodatainfo.json and
test_videodatainfo.json, or with one JSON of all clips such as MSRVTT_data.json. Where
MSRVTT_JSFUSION_test.csv is beside them, the split "1k-A" of JSFusion (Yu et al. 2018), its 1,000
clips with the caption that it names are the test split; train are all others but the official val,
which that split's users train on too.

VATEX (Wang et al. 2019), English captions: the root is a folder with vatex_training_v1.0.json and
vatex_validation_v1.0.json. HGR and VSE∞ cut the 3,000 clips of the second into 1,500 for val and
1,500 for test, by HGR's lists public_split/{val,tst}_names.npy in the same folder. Without these
lists the first half is val and the second half test, which is not the papers' split.

A clip's file is its name with .mp4.
"""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.foundation.files import npy
from pipeline.foundation.files.parsing import text
from pipeline.foundation.manifest.reader import (
    Reader,
    Source,
    expecting,
    json_of,
    table_of,
)
from pipeline.foundation.manifest.text_file import text_of
from pipeline.foundation.parts.errors import InputError, refusing

MSRVTT_SPLITS = {"train": "train", "validate": "val", "test": "test"}
MSRVTT_PAIR = ("train_val_videodatainfo.json", "test_videodatainfo.json")
MSRVTT_WHOLE = ("MSRVTT_data.json", "videodatainfo_2017.json", "videodatainfo.json")
JSFUSION = "MSRVTT_JSFUSION_test.csv"
VATEX_TRAINING = "vatex_training_v1.0.json"
VATEX_VALIDATION = "vatex_validation_v1.0.json"
# HGR's lists of clips: {trn,val,tst}_names.npy, an array of text each.
SPLITS = {"train": "trn", "val": "val", "test": "tst"}
FOLDER = "public_split"


def msrvtt(source: Source) -> pd.DataFrame:
    """Read MSR-VTT: clips in the order of their numbers."""
    path = source.path
    files = _msrvtt_files(path)
    has_jsfusion = path.is_dir() and (path / JSFUSION).is_file()
    names_of_files = " and ".join(file.name for file in files)
    by = f", the test split by {JSFUSION}" if has_jsfusion else ""
    source.say(
        f"{path}: read as MSR-VTT's JSON, {names_of_files}; clip in video_id, "
        f"caption in caption, split in split{by}"
    )
    splits: dict[str, str] = {}
    captions: dict[str, list[str]] = {}
    for file in files:
        _add_msrvtt(file, splits, captions)
    if has_jsfusion:
        _choose_jsfusion(path / JSFUSION, splits, captions)
    number_of = {video: _number(video, path) for video in splits}
    clips = []
    for video in sorted(splits, key=lambda video: (number_of[video], video)):
        of_video = captions.get(video, [])
        clips.append((number_of[video], f"{video}.mp4", splits[video], of_video))
    return table_of(clips).assign(kind="video")


def _msrvtt_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    for names in (MSRVTT_PAIR, *((name,) for name in MSRVTT_WHOLE)):
        if all((path / name).is_file() for name in names):
            return [path / name for name in names]
    raise InputError(f"{path}: expected {' and '.join(MSRVTT_PAIR)}, or {MSRVTT_WHOLE[0]}")


def _add_msrvtt(file: Path, splits: dict[str, str], captions: dict[str, list[str]]) -> None:
    tree = json_of(file)
    with expecting(file, "MSR-VTT's layout, with lists videos and sentences"):
        for video in tree["videos"]:
            video_id = text(video["video_id"])
            splits[video_id] = MSRVTT_SPLITS[video["split"]]
        for sentence in tree["sentences"]:
            video_id = text(sentence["video_id"])
            of_video = captions.setdefault(video_id, [])
            of_video.append(text(sentence["caption"]))
    strange = captions.keys() - splits.keys()
    if strange:
        raise InputError(f"{file}: has captions of {min(strange)!a}, which is none of its videos")


def _choose_jsfusion(file: Path, splits: dict[str, str], captions: dict[str, list[str]]) -> None:
    """Make the clips of JSFusion's list the test split, with one caption each, and train on the
    rest.
    """
    content = io.StringIO(text_of(file))
    lines: list[dict[str, Any]] = list(csv.DictReader(content))
    if not lines or not {"video_id", "sentence"} <= lines[0].keys():
        raise InputError(f"{file}: expected the columns video_id and sentence")
    for row, line in enumerate(lines, start=1):
        if line["video_id"] is None or line["sentence"] is None:
            raise InputError(f"{file}, row {row}: a field is missing")
    test = {line["video_id"]: line["sentence"] for line in lines}
    strange = test.keys() - splits.keys()
    if strange:
        raise InputError(f"{file}: names {min(strange)!a}, which is none of the videos")
    for video, split in splits.items():
        if video in test:
            splits[video] = "test"
        elif split == "test":
            splits[video] = "train"
    captions |= {video: [sentence] for video, sentence in test.items()}


def _number(video: str, path: Path) -> int:
    match = re.fullmatch(r"video(\d{1,18})", video)
    if match is None:
        raise InputError(
            f"{path}: expected clips called video0, video1 and so on, got {video[:40]!a}"
        )
    return int(match[1])


def _is_msrvtt(path: Path) -> bool:
    if path.is_dir():
        files = [path / name for name in (*MSRVTT_PAIR, *MSRVTT_WHOLE)]
        return any(file.is_file() for file in files)
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return b'"video_id"' in file.read(100_000)


def vatex(source: Source) -> pd.DataFrame:
    """Read VATEX: the clips of the training file, then those of the validation file, val before
    test.
    """
    path = source.path
    listed = splits_of(path / FOLDER)
    origins: list[str] = []
    for split, half_name in (("val", "first"), ("test", "second")):
        if split in listed:
            origins.append(f"{split} by {FOLDER}")
        else:
            origins.append(
                f"{split} is the {half_name} half of {VATEX_VALIDATION}, which is not the papers' split"
            )
    source.say(
        f"{path}: read as VATEX's JSON, {VATEX_TRAINING} and {VATEX_VALIDATION}; clip in videoID, caption in "
        f"enCap; {'; '.join(origins)}"
    )
    train = _clips(path / VATEX_TRAINING)
    held_out = _clips(path / VATEX_VALIDATION)
    half = len(held_out) // 2
    names_held_out = list(held_out)
    val = listed.get("val", names_held_out[:half])
    test = listed.get("test", names_held_out[half:])
    strange = {*val, *test} - held_out.keys()
    if strange:
        raise InputError(
            f"{path / FOLDER}: lists {min(strange)!a}, which {VATEX_VALIDATION} does not have"
        )
    clips: list[tuple[int, str, str, list[str]]] = []
    for split, names in (("train", list(train)), ("val", val), ("test", test)):
        captions = train if split == "train" else held_out
        for name in names:
            clips.append((len(clips), f"{name}.mp4", split, captions[name]))
    return table_of(clips).assign(kind="video")


def _clips(path: Path) -> dict[str, list[str]]:
    captions: dict[str, list[str]] = {}
    with expecting(path, "VATEX's layout, a list of videoID and enCap"):
        for clip in json_of(path):
            name = _name(clip["videoID"], path)
            captions[name] = [text(caption) for caption in clip["enCap"]]
    return captions


def _name(name: object, path: Path) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"[\w-]+", name):
        raise InputError(
            f"{path}: expected a videoID of letters, digits, _ and -, got {str(name)[:40]!a}"
        )
    return name


def names_of(path: Path) -> list[str]:
    """Read the names of a list of clips, in order. Nothing is unpickled."""
    with (
        refusing(
            (ValueError, OSError, EOFError),
            f"{path}: expected an array of text without pickled objects",
        ),
        refusing(FileNotFoundError, f"{path}: no such list of clips"),
    ):
        names = npy.mapped(path)
    if names.dtype.kind != "U" or names.ndim != 1:
        raise InputError(f"{path}: expected a list of names, got {names.dtype} {list(names.shape)}")
    return [str(name) for name in names]


def splits_of(folder: Path) -> dict[str, list[str]]:
    """Read the lists of all splits: split -> names in order; a split whose file is not there is
    left out.
    """
    files = {split: folder / f"{short}_names.npy" for split, short in SPLITS.items()}
    return {split: names_of(file) for split, file in files.items() if file.is_file()}


MSRVTT = Reader("MSR-VTT's JSON", _is_msrvtt, msrvtt)
VATEX = Reader(
    f"a folder with VATEX's {VATEX_TRAINING}", lambda path: (path / VATEX_TRAINING).is_file(), vatex
)

"""The annotations of MSR-VTT and VATEX in small, as their files are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.foundation import manifest
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError


def dump(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def build(annotations: Path) -> Manifest:
    return manifest.build("clips", None, annotations)


def said_of(annotations: Path) -> str:
    """What the annotations are taken for."""
    said: list[str] = []
    manifest.build("clips", None, annotations, say=said.append)
    assert said[0].startswith(f"{annotations}: read as ")
    assert "\n" not in said[0]
    return said[0].partition(": read as ")[2]


def videos(*numbers: int, split: str = "train") -> list[dict[str, Any]]:
    return [
        {
            "video_id": f"video{number}",
            "split": split,
            "url": "…",
            "start time": 1.0,
            "end time": 9.0,
            "category": 3,
            "id": number,
        }
        for number in numbers
    ]


def sentences(*pairs: tuple[int, str]) -> list[dict[str, Any]]:
    return [
        {"sen_id": place, "video_id": f"video{number}", "caption": caption}
        for place, (number, caption) in enumerate(pairs)
    ]


def test_msrvtt(tmp_path: Path) -> None:
    dump(
        tmp_path / "train_val_videodatainfo.json",
        {
            "info": {},
            "videos": videos(10, 2) + videos(4, split="validate"),
            "sentences": sentences(
                (2, "a man runs"), (10, "a dog"), (2, "a man is running"), (4, "a cat")
            ),
        },
    )
    dump(
        tmp_path / "test_videodatainfo.json",
        {"videos": videos(7, split="test"), "sentences": sentences((7, "a car"))},
    )
    table = build(tmp_path)
    assert table.kind == "video"
    assert table.images["file"].tolist() == [
        "video2.mp4",
        "video4.mp4",
        "video7.mp4",
        "video10.mp4",
    ]
    assert table.images["split"].tolist() == ["train", "val", "test", "train"]
    assert table.split("train").captions.tolist() == ["a man runs", "a man is running", "a dog"]
    assert (
        said_of(tmp_path)
        == "MSR-VTT's JSON, train_val_videodatainfo.json and test_videodatainfo.json; clip in "
        "video_id, caption in caption, split in split"
    )
    alone = build(
        dump(tmp_path / "one.json", {"videos": videos(1), "sentences": sentences((1, "x"))})
    )
    assert alone.images["file"].tolist() == ["video1.mp4"]


@pytest.mark.specification
def test_msrvtt_1ka(tmp_path: Path) -> None:
    dump(
        tmp_path / "MSRVTT_data.json",
        {
            "videos": videos(0) + videos(1, split="validate") + videos(7010, 7020, split="test"),
            "sentences": sentences((0, "a"), (1, "b"), (7010, "c"), (7020, "d"), (7010, "e")),
        },
    )
    (tmp_path / "MSRVTT_JSFUSION_test.csv").write_text(
        'key,vid_key,video_id,sentence\nret0,msr7010,video7010,"e, too"\n'
    )
    table = build(tmp_path)
    assert dict(zip(table.images["file"], table.images["split"], strict=True)) == {
        "video0.mp4": "train",
        "video1.mp4": "val",
        "video7010.mp4": "test",
        "video7020.mp4": "train",
    }
    assert table.split("test").captions.tolist() == ["e, too"]
    assert said_of(tmp_path).endswith("split in split, the test split by MSRVTT_JSFUSION_test.csv")
    (tmp_path / "MSRVTT_JSFUSION_test.csv").write_text(
        "video_id,sentence\nvideo7010,c\nvideo7020\n"
    )
    with pytest.raises(InputError, match=r"MSRVTT_JSFUSION_test.csv, row 2: a field is missing"):
        build(tmp_path)


def test_vatex(tmp_path: Path) -> None:
    clip = {"chCap": ["一"], "videoID": "Ptf_2VRj-V0_000122_000132", "enCap": ["One.", "Two."]}
    held_out = [{"videoID": f"v{number}", "enCap": [f"caption {number}"]} for number in range(5)]
    dump(tmp_path / "vatex_training_v1.0.json", [clip])
    dump(tmp_path / "vatex_validation_v1.0.json", held_out)
    table = build(tmp_path)
    assert table.images["split"].tolist() == ["train", *["val"] * 2, *["test"] * 3]
    assert table.split("train").captions.tolist() == ["One.", "Two."]
    assert said_of(tmp_path) == (
        "VATEX's JSON, vatex_training_v1.0.json and vatex_validation_v1.0.json; clip in videoID, caption in enCap; val "
        "is the first half of vatex_validation_v1.0.json, which is not the papers' split; test is the second half of "
        "vatex_validation_v1.0.json, which is not the papers' split"
    )
    dump(tmp_path / "vatex_training_v1.0.json", [clip | {"enCap": ["One.", None]}])
    with pytest.raises(InputError, match="expected text, got None"):
        build(tmp_path)
    dump(tmp_path / "vatex_training_v1.0.json", [clip])
    (tmp_path / "public_split").mkdir()
    np.save(tmp_path / "public_split" / "val_names.npy", ["v3", "v0"])
    np.save(tmp_path / "public_split" / "tst_names.npy", ["v2", "v1"])
    assert build(tmp_path).images["file"].tolist()[1:] == ["v3.mp4", "v0.mp4", "v2.mp4", "v1.mp4"]
    assert said_of(tmp_path).endswith("caption in enCap; val by public_split; test by public_split")


def test_pickled_names_are_not_read(tmp_path: Path) -> None:
    dump(tmp_path / "vatex_training_v1.0.json", [])
    dump(tmp_path / "vatex_validation_v1.0.json", [{"videoID": "b", "enCap": ["a man runs"]}])
    (tmp_path / "public_split").mkdir()
    np.save(
        tmp_path / "public_split" / "val_names.npy",
        np.array(["b"], dtype=object),
        allow_pickle=True,
    )
    with pytest.raises(InputError, match="an array of text without pickled objects"):
        build(tmp_path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"videos": videos(1), "sentences": [{"video_id": "video1"}]}, "not MSR-VTT's layout"),
        (
            {"videos": videos(1), "sentences": [{"video_id": "video1", "caption": None}]},
            "expected text, got None",
        ),
        ({"videos": videos(1), "sentences": sentences((2, "x"))}, "captions of 'video2'"),
        (
            {"videos": [{"video_id": "../x", "split": "test"}], "sentences": []},
            "clips called video0",
        ),
        (
            {"videos": [{"video_id": "video1", "split": "dev"}], "sentences": []},
            "not MSR-VTT's layout",
        ),
    ],
)
def test_other_layouts_are_refused(tmp_path: Path, content: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        manifest.build(
            "clips", None, dump(tmp_path / "a.json", content), manifest.Reading("msrvtt")
        )

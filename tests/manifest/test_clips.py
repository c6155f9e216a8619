"""Manifests of clips; and those of photographs, which are as they always were."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.foundation import manifest
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError

LINES = (
    "video,caption,split,start,end",
    "a.mp4,A dog runs.,train,0,2.5",
    "a.mp4,It sits.,train,2.5,",
    "b.mp4,A cat.,test,,",
    "a.mp4,A dog runs fast.,train,0,2.5",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.mp4", "b.mp4"):
        (tmp_path / "clips").mkdir(exist_ok=True)
        (tmp_path / "clips" / name).write_bytes(name.encode())
    return tmp_path / "clips"


def build(folder: Path, *lines: str) -> Manifest:
    file = folder.parent / "captions.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return manifest.build("mine", folder, file, manifest.Reading(kind="video"))


@pytest.mark.specification
def test_clips_are_parts_of_files(folder: Path) -> None:
    table = build(folder, *LINES)
    assert table.kind == "video"
    assert table.images["file"].tolist() == ["a.mp4", "a.mp4", "b.mp4"]
    one, other = (str(folder / name) for name in ("a.mp4", "b.mp4"))
    first, second = GalleryFile(one, "video", 0, 2.5), GalleryFile(one, "video", 2.5, None)
    assert table.gallery() == [first, second, GalleryFile(other, "video")]
    assert table.split("train").captions.tolist() == ["A dog runs.", "A dog runs fast.", "It sits."]


def test_saved_and_loaded_is_the_same(folder: Path, tmp_path: Path) -> None:
    table = build(folder, *LINES)
    table.save(tmp_path / "mine.parquet")
    again = Manifest.load(tmp_path / "mine.parquet")
    assert (again.digest, again.images_digest, again.kind) == (
        table.digest,
        table.images_digest,
        "video",
    )
    assert [file.part for file in again.gallery()] == ["0 s to 2.5 s", "2.5 s to the end", ""]


def test_another_part_is_another_clip(folder: Path) -> None:
    first, second = (
        build(folder, *LINES),
        build(folder, *(line.replace(",0,2.5", ",0,2.4") for line in LINES)),
    )
    assert first.images_digest != second.images_digest
    assert first.digest != second.digest


def test_photographs_keep_their_digests(tmp_path: Path) -> None:
    """Other digests would make every store and head there is useless."""
    for name in ("a.png", "b.png"):
        (tmp_path / "photos").mkdir(exist_ok=True)
        (tmp_path / "photos" / name).write_bytes(b"12345")
    captions = tmp_path / "captions.csv"
    captions.write_text("image,caption,split\na.png,A dog.,train\nb.png,A cat.,test\n")
    table = manifest.build("mine", tmp_path / "photos", captions)
    assert table.kind == "image"
    assert list(table.table.columns) == [
        "image_id",
        "file",
        "bytes",
        "split",
        "caption_id",
        "caption",
    ]
    assert table.digest == "79ada820e3fdd8949b2fed5d103f2b8045d846497af4e151c4217e191993ca4e"
    assert table.images_digest == "f4b46e1400619ba5d6bbd7eef8e2f38feebe7796649ef081ed137e571ee2f869"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            "b.mp4,A cat.,test,3,2",
            r"start \(3 s\) must be 0 s or later and come before its end \(2 s\)",
        ),
        ("b.mp4,A cat.,test,-1,2", r"start \(-1 s\) must be 0 s or later"),
        ("b.mp4,A cat.,test,-1,", r"start \(-1 s\) .* its end \(none given\)"),
        ("b.mp4,A cat.,test,one,2", "expected seconds"),
        ("b.mp4,A cat.,test,inf,", "seconds"),
        ("b.mp4,A cat.,test,nan,2", "expected seconds.*nan"),
        ("b.mp4,A cat.,test,,0", r"start \(0 s\) .* its end \(0 s\)"),
        ("a.mp4,A dog.,val,0,2.5", "two clips or splits"),
    ],
)
def test_bad_lines_are_refused(folder: Path, line: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        build(folder, *LINES, line)


def test_a_csv_of_both_kinds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "captions.csv").write_text(
        "image,video,caption\na.jpg,a.mp4,A dog.\n", encoding="utf-8"
    )
    with pytest.raises(InputError, match="has both columns image and video"):
        manifest.build("mine", tmp_path, tmp_path / "captions.csv")


def test_videos_without_captions_and_missing_ones_are_counted(folder: Path) -> None:
    made = build(folder, *(line for line in LINES if "b.mp4" not in line), "c.mp4,A cat.,test,,")
    assert made.left_out == {"video missing": 1, "video without a caption": 1}


def test_clips_are_plain_files_of_this_machine(folder: Path) -> None:
    (folder / "a.tar").touch()
    captions = folder.with_name("packed.csv")
    captions.write_text("video,caption\na.tar/a.mp4,A dog.\n")
    with pytest.raises(InputError, match=r"a\.tar/a\.mp4: clips are decoded from plain files"):
        manifest.build("clips", folder, captions, manifest.Reading(kind="video"))
    captions.write_text("video,caption\na.mp4,A dog.\n")
    with pytest.raises(InputError, match=r"s3://bucket/clips: clips are decoded from plain files"):
        manifest.build("clips", Path("s3://bucket/clips"), captions, manifest.Reading(kind="video"))


def test_kinds_are_not_taken_for_each_other(folder: Path) -> None:
    build(folder, *LINES)
    with pytest.raises(InputError, match="names videos; give their folder with --videos"):
        manifest.build(
            "mine", folder, folder.parent / "captions.csv", manifest.Reading(kind="image")
        )
    with pytest.raises(InputError, match="names images; give their folder with --images"):
        build(folder, "image,caption", "a.mp4,A dog.")
    with pytest.raises(InputError, match="a column start alone"):
        build(folder, "video,caption,start", "a.mp4,A dog.,1")

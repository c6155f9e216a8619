"""Tars and Parquet from elsewhere: what they hold is taken as it is meant, or refused in one
line.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from pipeline.extensions.webdataset.reader import NOT_FETCHED
from pipeline.foundation.manifest import Manifest, build
from pipeline.foundation.parts.errors import InputError

pytestmark = pytest.mark.slow

GOOD = [("a.jpg", b"1"), ("a.txt", b"a caption")]


def tar(folder: Path, *members: tuple[str, bytes]) -> Path:
    path = folder / "0.tar"
    with tarfile.open(path, "w") as content:
        for name, each in members:
            info = tarfile.TarInfo(name)
            info.size = len(each)
            content.addfile(info, io.BytesIO(each))
    return folder


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([("./a.jpg", b"2")], r"holds 'a\.jpg' twice"),
        ([("../b.jpg", b"2"), ("../b.txt", b"b")], "leaves the image folder"),
    ],
)
def test_a_tar_that_is_not_as_it_should_be_is_refused(
    tmp_path: Path, members: list[tuple[str, bytes]], said: str
) -> None:
    with pytest.raises(InputError, match=said) as refusal:
        build("web", tmp_path, tar(tmp_path, *GOOD, *members))
    assert str(refusal.value).count(str(tmp_path)) == 1


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([("b.jpg", b"2"), ("b.json", b"[" * 200_000)], "damaged row"),
        ([("b.jpg", b"2"), ("b.json", rb'{"caption": "\ud800"}')], "damaged row"),
        ([("b.jpg", b"2"), ("b.txt", bytes([255]))], "not UTF-8"),
        ([("b.png", b"2"), ("b.tif", b"2"), ("b.txt", b"b")], "two images of one name"),
        ([("/b.jpg", b"2"), ("/b.txt", b"b")], "image missing"),
        ([("b.jpg", b"2")], "no caption"),
    ],
)
def test_a_member_that_cannot_be_used_is_left_out(
    tmp_path: Path, members: list[tuple[str, bytes]], reason: str
) -> None:
    made = build("web", tmp_path, tar(tmp_path, *GOOD, *members))
    assert made.images["file"].tolist() == ["0.tar/a.jpg"]
    assert made.left_out == {reason: 1}


@pytest.mark.parametrize(
    ("keys", "ids"),
    [(("7", "3"), [7, 3]), (("7", "07"), [0, 1]), (("7", "1" * 18), [7, int("1" * 18)])]
    + [(("7", digits), [0, 1]) for digits in ("1" * 19, "9" * 40)],
)
def test_keys_are_ids_where_no_two_images_share_one(
    tmp_path: Path, keys: tuple[str, str], ids: list[int]
) -> None:
    for number, key in enumerate(keys):
        tar(tmp_path, (f"{key}.jpg", b"1"), (f"{key}.txt", b"a caption")).joinpath("0.tar").rename(
            tmp_path / f"{number}0.tar"
        )
    assert build("web", tmp_path, tmp_path).images["image_id"].tolist() == ids


def test_rows_without_an_address_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"1")
    parquet.write_table(
        pa.table({"url": [None, "a.jpg"], "caption": ["lost", "there"]}), tmp_path / "0.parquet"
    )
    assert build("web", tmp_path, tmp_path / "0.parquet").table["caption"].tolist() == ["there"]


def captions_of(made: Manifest) -> list[tuple[str, str]]:
    return sorted(made.rows(["file", "caption"]).itertuples(index=False, name=None))


def test_a_key_ends_at_the_first_dot_where_an_image_has_no_text_of_its_name(tmp_path: Path) -> None:
    members = [
        (f"{key}.{name}", content)
        for key, caption in (("s1", b"a dog"), ("s2", b"a cat"))
        for name, content in (("input.jpg", b"1"), ("outputs.txt", caption), ("meta.json", b"{}"))
    ]
    assert captions_of(build("web", tmp_path, tar(tmp_path, *members))) == [
        ("0.tar/s1.input.jpg", "a dog"),
        ("0.tar/s2.input.jpg", "a cat"),
    ]
    # A text of the image's own name is its caption, whatever dots there are.
    (tmp_path / "0.tar").unlink()
    own = [("a.b.jpg", b"1"), ("a.b.txt", b"a dog"), ("a.c.jpg", b"2"), ("a.c.txt", b"a cat")]
    assert captions_of(build("web", tmp_path, tar(tmp_path, *own))) == [
        ("0.tar/a.b.jpg", "a dog"),
        ("0.tar/a.c.jpg", "a cat"),
    ]


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ((("s.left.jpg", b"1"), ("s.right.jpg", b"2"), ("s.txt", b"x")), "two images of one name"),
        ((("s.in.jpg", b"1"), ("s.a.txt", b"x"), ("s.b.txt", b"y")), "two texts of one image"),
    ],
)
def test_a_key_that_says_not_which_caption_is_meant_is_left_out(
    members: tuple[tuple[str, bytes], ...], reason: str, tmp_path: Path
) -> None:
    made = build("web", tmp_path, tar(tmp_path, *GOOD, *members))
    assert made.images["file"].tolist() == ["0.tar/a.jpg"]
    assert made.left_out == {reason: 1}


def test_every_image_that_img2dataset_could_not_make_is_counted(tmp_path: Path) -> None:
    tar(tmp_path, *GOOD)
    status = ["success", "failed_to_download", "failed_to_resize"]
    table = pa.table({"status": status, "url": ["https://a/0", "https://a/1", "https://a/2"]})
    parquet.write_table(table, tmp_path / "0.parquet")
    assert build("web", tmp_path, tmp_path).left_out == {NOT_FETCHED: 2}


def test_images_of_a_folder_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    names = [f"{number * 7919 % 997:03}" for number in range(40)]
    for name in names:
        (tmp_path / f"{name}.jpg").write_bytes(b"1")
        (tmp_path / f"{name}.txt").write_text(f"caption {name}")
    made = build("web", tmp_path, tmp_path)
    assert made.images["file"].tolist() == [f"{name}.jpg" for name in sorted(names)]


def test_a_split_is_called_as_in_manifests(tmp_path: Path) -> None:
    members = []
    for split in ("train", "validation", "dev", "test"):
        members.append((f"{split}.jpg", b"1"))
        members.append((f"{split}.json", f'{{"caption": "a", "split": "{split}"}}'.encode()))
    made = build("web", tmp_path, tar(tmp_path, *members))
    assert made.images["split"].tolist() == ["train", "val", "val", "test"]

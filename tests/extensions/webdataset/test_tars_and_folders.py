"""Tars and folders as people have them, those that were not fetched, and those of photographs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import packed
import pytest
from read_examples import check
from stand_ins import STAND_INS, pointed

from pipeline.extensions.webdataset import reader
from pipeline.foundation.manifest import Manifest, build
from pipeline.foundation.manifest.examples import Example, as_json, picture, table, tar
from pipeline.foundation.parts.errors import InputError

pytestmark = pytest.mark.slow

DOG = "A dog runs."
ODD = {
    "5 line ends in a tar's json": Example(
        "",
        {
            "web/0.tar": tar(
                {"1.jpg": picture(), "1.json": as_json({"caption": "one\ntwo\u2028three"})}
            )
        },
        [("0.tar/1.jpg", "test", "one\ntwo\u2028three")],
        "web",
        "web",
    ),
    "5 only a line's end cuts a text": Example(
        "",
        {"web/0.tar": tar({"1.jpg": picture(), "1.txt": "one\x0b\n2"})},
        [("0.tar/1.jpg", "test", caption) for caption in ("one", "2")],
        "web",
        "web",
    ),
    "9 an empty text, caption in the json": Example(
        "",
        {"web/0.tar": tar({"1.jpg": picture(), "1.txt": "", "1.json": as_json({"caption": DOG})})},
        [("0.tar/1.jpg", "test", DOG)],
        "web",
        "web",
    ),
    "12 jpg, tif, gif, bmp": Example(
        "",
        {
            "web/0.tar": tar(
                {
                    f"{number}.{suffix}": content
                    for number, form in enumerate(("JPEG", "TIFF", "GIF", "BMP"), start=1)
                    for suffix, content in (
                        (
                            form.lower().replace("jpeg", "JPG").replace("tiff", "tif"),
                            picture(1, form),
                        ),
                        ("txt", f"caption {number}"),
                    )
                }
            )
        },
        [
            (f"0.tar/{number}.{suffix}", "test", f"caption {number}")
            for number, suffix in enumerate(("JPG", "tif", "gif", "bmp"), start=1)
        ],
        "web",
        "web",
    ),
    "a tar from macOS": Example(
        "",
        {
            "web/0.tar": tar(
                {"./._1.jpg": b"x", "./1.jpg": picture(), "./1.txt": DOG, "./._1.txt": b"x"}
            )
        },
        [("0.tar/1.jpg", "test", DOG)],
        "web",
        "web",
    ),
    "splits of a tar's json": Example(
        "",
        {
            "web/0.tar": tar(
                {"1.jpg": picture(), "1.json": as_json({"TEXT": DOG, "split": "validation"})}
            )
        },
        [("0.tar/1.jpg", "val", DOG)],
        "web",
        "web",
    ),
}


@pytest.mark.specification
@pytest.mark.parametrize("name", ODD)
def test_it_is_read_as_it_is_meant(name: str, tmp_path: Path) -> None:
    check(ODD[name], tmp_path)


def test_a_folder_of_tars_is_none_of_the_tables_beside_them(tmp_path: Path) -> None:
    beside = {
        "web/0.parquet": table({"url": ["http://x/1.jpg"], "caption": ["other"]}),
        "web/0.csv": "image,caption\n1.jpg,other\n",
    }
    tars = {"web/0.tar": tar({"1.jpg": picture(), "1.txt": DOG})}
    check(Example("", tars | beside, [("0.tar/1.jpg", "test", DOG)], "web", "web"), tmp_path)


def test_packed_photographs_have_the_ids_splits_and_captions_of_files(
    scenes: Manifest, tmp_path: Path
) -> None:
    named = packed.tars(scenes, tmp_path / "packed")
    made = build("packed", named.images_folder, named.images_folder)
    for column in ("image_id", "file", "split", "bytes"):
        assert made.images[column].tolist() == named.images[column].tolist(), column
    assert made.table["caption"].tolist() == scenes.table["caption"].tolist()


@pytest.mark.parametrize(("stand_in", "words"), STAND_INS)
def test_tars_in_a_folder_are_said_not_to_be_fetched(
    stand_in: Callable[[Path], None], words: str, tmp_path: Path
) -> None:
    folder = tmp_path / "tars"
    folder.mkdir()
    stand_in(folder / "0.tar")
    with pytest.raises(InputError, match=re.escape(f"0.tar: {words}")):
        build("mine", folder, folder)


def test_texts_outside_the_folder_and_long_ones_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "LARGEST_TEXT", 6)
    folder = tmp_path / "photos"
    (folder / "deep").mkdir(parents=True)
    for name, text in (("1.txt", "a dog\n"), ("deep/2.txt", "a cat"), ("3.txt", "a horse")):
        (folder / name).write_text(text)
    (tmp_path / "secret").write_text("key")
    (folder / "4.txt").symlink_to(tmp_path / "secret")
    (folder / "5.txt").symlink_to(folder / "deep" / "2.txt")
    read = reader._reading(folder)
    for name, content in (("1.txt", b"a dog\n"), ("deep/2.txt", b"a cat"), ("5.txt", b"a cat")):
        assert read(name) == content
    for name in ("3.txt", "4.txt", "../secret"):
        with pytest.raises(OSError, match="leaves the folder, or is too large"):
            read(name)


def test_a_pointer_is_no_caption(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(120):
        (folder / f"{number}.png").write_bytes(picture(number, "PNG"))
        (folder / f"{number}.txt").write_text(f"a dog {number}\n")
    pointed(folder / "3.txt")
    made = build("mine", folder, folder)
    assert not any("git-lfs" in caption for caption in made.rows(["caption"])["caption"])
    assert made.left_out == {"damaged row": 1}

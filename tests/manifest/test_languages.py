"""Captions in several languages: Multi30K's files, a CSV with languages, and manifests without
any.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.foundation import manifest
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest import Manifest, multi30k
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.recipe import Variation

IMAGES = {"train": ["11.jpg", "12.jpg", "13.jpg"], "val": ["21.jpg"], "test": ["31.jpg", "32.jpg"]}


def captions_of(split: str, ending: str) -> list[str]:
    return [f"{ending} of {image}" for image in IMAGES[split]]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of multi30k/dataset with its own names of files and folders, and few images."""
    data = tmp_path / "dataset" / "data"
    for split, images in IMAGES.items():
        task1, task2 = ("test_2016_flickr", "test_2016") if split == "test" else (split, split)
        listed = {"task1": f"{task1}.txt", "task2": f"{task2}_images.txt"}
        endings = {
            ("task1", task1): ["en", "de", "fr", "cs"],
            ("task2", task2): [
                f"{number}.{language}" for number in range(1, 6) for language in ("en", "de")
            ],
        }
        for (task, name), each in endings.items():
            (data / task / "image_splits").mkdir(parents=True, exist_ok=True)
            (data / task / "raw").mkdir(exist_ok=True)
            (data / task / "image_splits" / listed[task]).write_text("\n".join(images) + "\n")
            for ending in each:
                pack(
                    data / task / "raw" / f"{name}.{ending}.gz",
                    "\n".join(captions_of(split, ending)) + "\n",
                )
    return tmp_path / "dataset"


def pack(path: Path, text: str) -> None:
    path.write_bytes(gzip.compress(text.encode()))


@pytest.mark.specification
@pytest.mark.parametrize("below", ["", "data"])
def test_multi30k_has_twelve_captions_an_image(clone: Path, below: str) -> None:
    said: list[str] = []
    built = manifest.build("multi30k", None, clone / below, say=said.append)
    assert said[0] == (
        f"{clone / below}: read as Multi30K's files, UTF-8, packed by gzip; captions in en and de of "
        "task2, in fr and cs of task1; split by the names of the files"
    )
    assert built.images["file"].tolist() == [
        image for images in IMAGES.values() for image in images
    ]
    assert built.images["split"].tolist() == ["train"] * 3 + ["val"] + ["test"] * 2
    test = built.split("test")
    assert test.captions[:12].tolist() == [
        f"{ending} of 31.jpg"
        for ending in (
            *(f"{number}.en" for number in range(1, 6)),
            *(f"{number}.de" for number in range(1, 6)),
            "fr",
            "cs",
        )
    ]
    assert test.languages is not None
    assert test.languages.tolist() == [*["en"] * 5, *["de"] * 5, "fr", "cs"] * 2
    assert built.table["caption_id"].is_unique


def test_a_caption_of_multi30k_ends_at_a_line_feed_alone(clone: Path) -> None:
    captions = [f"a\vdog\u2028and {number}\x85" for number in range(2)]
    pack(clone / "data" / "task1" / "raw" / "test_2016_flickr.fr.gz", "\n".join(captions) + "\n")
    test = manifest.build("multi30k", None, clone).split("test")
    assert test.in_languages(["fr"]).captions.tolist() == captions


def test_a_split_in_some_languages_is_that_of_a_manifest_with_them_alone(clone: Path) -> None:
    built = manifest.build("multi30k", None, clone)
    some = built.table[built.table["language"].isin(["cs", "de"])]
    expected = Manifest(some.reset_index(drop=True), "multi30k", Path()).split("test")
    found = built.split("test").in_languages(["de", "cs"])
    assert found.captions.tolist() == expected.captions.tolist()
    for name in ("store_rows", "image_ids", "caption_ids", "caption_image", "languages"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert (
        built.split("test").in_languages([]).captions.tolist()
        == built.split("test").captions.tolist()
    )
    with pytest.raises(
        InputError, match=r"no captions in the language 'es'; there are: cs, de, en, fr"
    ):
        built.split("test").in_languages(["de", "es"])


def test_images_without_a_caption_in_the_language_are_left_out(tmp_path: Path) -> None:
    built = read(tmp_path, "image,caption,language\na.png,one,en\nb.png,zwei,de\nb.png,two,en\n")
    german = built.split("test").in_languages(["de"])
    assert (german.image_ids.tolist(), german.caption_image.tolist(), german.captions.tolist()) == (
        [1],
        [0],
        ["zwei"],
    )


def packed(text: bytes) -> bytes:
    """The same bytes at all times."""
    return gzip.compress(text, mtime=0)


def spoilt() -> Iterator[tuple[str, bytes | None, str]]:
    yield "task2/raw/val.3.de.gz", None, "no such file.*task 1 and task 2"
    yield "task2/raw/val.3.de.gz", b"Zwei Hunde", "not a packed text file"
    yield "task2/raw/val.3.de.gz", packed(b"ein Hund")[:-9], "not a packed text file"
    yield "task2/raw/val.3.de.gz", packed(b"one\ntwo\n"), "expected 1 lines.*received 2"
    yield (
        "task1/raw/train.cs.gz",
        packed("psí".encode("latin-1")),
        "not a packed text file in UTF-8",
    )
    yield "task2/image_splits/val_images.txt", None, "no such annotation file"
    yield "task2/image_splits/val_images.txt", b"../secret.jpg\n", "leaves the image folder"
    yield "task2/image_splits/val_images.txt", b"11.jpg\n", "names two images"


@pytest.mark.parametrize(("file", "content", "said"), list(spoilt()))
def test_damaged_files_are_refused_in_one_line(
    clone: Path, file: str, content: bytes | None, said: str
) -> None:
    (clone / "data" / file).unlink()
    if content is not None:
        (clone / "data" / file).write_bytes(content)
    with pytest.raises(InputError, match=said):
        manifest.build("multi30k", None, clone)


def test_a_file_that_unpacks_without_end_is_refused(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multi30k, "LARGEST", 1000)
    pack(clone / "data" / "task1" / "raw" / "val.fr.gz", "a" * 100_000)
    with pytest.raises(InputError, match="unpacks to more than 1,000 bytes"):
        manifest.build("multi30k", None, clone)


def read(folder: Path, content: str) -> Manifest:
    (folder / "captions.csv").write_text(content, encoding="utf-8")
    return manifest.build("mine", None, folder / "captions.csv")


def test_a_csv_may_name_languages(tmp_path: Path) -> None:
    built = read(tmp_path, "image,caption,language,split\na.png,dog,en,val\na.png,pes,cs,val\n")
    built.save(tmp_path / "m.parquet")
    again = Manifest.load(tmp_path / "m.parquet")
    languages = again.split("val").languages
    assert languages is not None
    assert languages.tolist() == ["en", "cs"]
    assert again.digest == built.digest


def test_a_language_has_one_name_in_any_letters(tmp_path: Path) -> None:
    tags = ["DE", "de", "pt-br", "zh-hANT-tw", "sl-Rozaj", "deu", "eng-Latn", "en_US"]
    built = read(
        tmp_path, "image,caption,language\n" + "".join(f"a.png,dog,{tag}\n" for tag in tags)
    )
    assert built.table["language"].tolist() == [
        "de",
        "de",
        "pt-BR",
        "zh-Hant-TW",
        "sl-rozaj",
        "de",
        "en",
        "en-US",
    ]
    assert Variation(languages=("PT-br", "DE", "de")).name("vse2ad") == "vse2ad-de-pt-BR"
    with pytest.raises(InputError, match="--language: 'english' is no language"):
        Variation(languages=("english",)).name("vse2ad")


@pytest.mark.parametrize("name", ["", "e", "xx", "de-DE-DE", "<b>", "english"])
def test_what_is_no_language_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        InputError, match=r"is no language; expected a tag of BCP 47 .* \(caption 'dog' of b\.png\)"
    ):
        read(tmp_path, f"image,caption,language\na.png,cat,en\nb.png,dog,{name}\n")


def test_a_row_without_its_language_is_left_out(tmp_path: Path) -> None:
    made = read(tmp_path, "image,caption,language\na.png,dog\nb.png,cat,en \n")
    assert made.table[["file", "language"]].to_numpy().tolist() == [["b.png", "en"]]
    assert made.left_out == {"damaged row": 1}


def test_letters_have_one_spelling(tmp_path: Path) -> None:
    apart, joined = "u\u0308ber", "über"
    for table in (f"image,caption,language\na.png,{apart},de\n", f"image,caption\na.png,{apart}\n"):
        assert read(tmp_path, table).split("test").captions.tolist() == [joined]


def test_languages_change_the_digest_of_a_manifest_and_not_that_of_its_images(
    tmp_path: Path,
) -> None:
    built = read(
        tmp_path, "image,caption,split\nä.png,a dog,train\nä.png,two,train\nb.png,three,test\n"
    )
    rows = [
        [0, "ä.png", -1, "train", 0, "a dog"],
        [0, "ä.png", -1, "train", 1, "two"],
        [1, "b.png", -1, "test", 2, "three"],
    ]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    assert built.digest == digest([hashlib.sha256(lines.encode()).hexdigest(), {}])
    with_languages = built.table.assign(language="en")
    other = Manifest(with_languages, "mine", Path())
    assert other.images_digest == built.images_digest  # so a feature store serves both
    assert other.digest != built.digest


def test_a_manifest_has_no_other_columns() -> None:
    columns = ["image_id", "file", "bytes", "split", "caption_id", "caption", "colour"]
    with pytest.raises(
        InputError,
        match=r"perhaps photograph, language.* and kind, start, end, got.*colour",
    ):
        Manifest(pd.DataFrame([], columns=columns), "mine", Path())

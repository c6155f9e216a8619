"""The page of thumbnails: complete in itself, and whatever comes from data stays text."""

from __future__ import annotations

import base64
import io
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from PIL import Image

from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.judge.tables.html import PERCENT, SIDE, Hit, Section, search

NASTY = '<script>alert("1")</script> & \'"'


class Reader(HTMLParser):
    """Which tags there are, with their attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def photograph(path: Path, size: tuple[int, int]) -> GalleryFile:
    pixels = np.random.default_rng(0).integers(0, 255, (*size[::-1], 3), np.uint8)
    Image.fromarray(pixels).save(path)
    return GalleryFile(str(path))


def test_thumbnails_are_in_the_page_with_their_captions(tmp_path: Path) -> None:
    file = photograph(tmp_path / "wide.png", (800, 400))
    read = Reader(
        search("A red house", [Section("", [Hit(1, 0.5, 42, file, ["a house", "a red one"])])])
    )
    (image,) = (attributes for tag, attributes in read.tags if tag == "img")
    kind, data = str(image["src"]).split(",")
    assert kind == "data:image/webp;base64"
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (SIDE, SIDE // 2)
    assert image["alt"] == "a house"
    assert all(
        word in read.text
        for word in ("A red house", "1. similarity 0.500, image 42, wide.png", "a red one")
    )


def test_whatever_comes_from_data_stays_text(tmp_path: Path) -> None:
    file = photograph(tmp_path / "<b>&.png", (4, 4))
    hits = [Hit(1, 1.0, 1, file, [NASTY, "other"], found=NASTY), Hit(2, 0.5, 2, file, [NASTY])]
    text = search(NASTY, [Section(NASTY, hits, file)])
    read = Reader(text)
    assert not {"script", "b"} & {tag for tag, _ in read.tags}
    assert read.text.count(NASTY) == 4  # title, heading, what was found, a caption
    assert {attributes["alt"] for tag, attributes in read.tags if tag == "img"} == {
        NASTY,
        "The image that was searched with",
    }
    links = [
        str(value)
        for _, attributes in read.tags
        for name, value in attributes.items()
        if name in ("src", "href")
    ]
    assert len(links) == 3
    assert all(link.startswith("data:image/webp;") for link in links)
    assert "<b>&.png" in read.text


def test_an_image_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    gone = Hit(1, 1.0, 1, GalleryFile(str(tmp_path / "gone.jpg")), ["a house"])
    read = Reader(search("title", [Section("", [gone])]))
    assert "gone.jpg: no such file" in read.text
    assert ("div", {"class": "missing", "role": "img", "aria-label": "a house"}) in read.tags


def test_several_queries_have_a_section_each_and_a_list_of_all(tmp_path: Path) -> None:
    hits = [Hit(1, 0.5, 42, GalleryFile(str(tmp_path / "gone.jpg")), ["a house"])]
    read = Reader(search("3 texts", [Section(query, hits) for query in ("first", NASTY, "third")]))
    tags = [tag for tag, _ in read.tags]
    assert (tags.count("section"), tags.count("h2"), tags.count("nav"), tags.count("h1")) == (
        3,
        3,
        1,
        1,
    )
    links = [attributes["href"] for tag, attributes in read.tags if tag == "a"]
    assert links == [f"#{attributes['id']}" for tag, attributes in read.tags if tag == "section"]
    assert read.text.count(NASTY) == 2
    assert "script" not in tags


def test_a_percent_sign_stays_on_the_line_of_its_number(tmp_path: Path) -> None:
    hit = Hit(1, 0.5, 0, photograph(tmp_path / "a.png", (8, 8)), ["a 5 % slope"])
    assert "a 5\N{NO-BREAK SPACE}% slope" in Reader(search("t", [Section("a query", [hit])])).text


def test_scripts_are_left_as_they_are() -> None:
    assert PERCENT.sub(
        lambda found: found[0] if found[1] else "", "<script>i = 5 % j</script>5 %"
    ) == ("<script>i = 5 % j</script>5")

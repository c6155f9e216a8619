"""Thumbnails within a page: whole photographs, small, in their own shape."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from pipeline.foundation.settings import Report
from pipeline.judge.systems.scores.system import System
from pipeline.judge.tables import html
from pipeline.run.report.examples import Gallery
from pipeline.run.report.page import explorer
from pipeline.run.report.page.explorer import gather


@pytest.mark.parametrize(
    ("size", "small"), [((800, 400), (100, 50)), ((30, 60), (30, 60)), ((4000, 3), (100, 1))]
)
def test_a_thumbnail_is_the_whole_photograph_and_never_enlarged(
    size: tuple[int, int], small: tuple[int, int]
) -> None:
    left_red = np.zeros((size[1], size[0], 3), np.uint8)
    left_red[:, : size[0] // 2, 0] = 255
    photograph = Image.fromarray(left_red)
    kind, data = html.data_uri(photograph, 100).split(",")
    shown = Image.open(io.BytesIO(base64.b64decode(data)))
    assert (kind, shown.size, photograph.size) == ("data:image/webp;base64", small, size)
    red = np.asarray(shown.convert("RGB"))[..., 0].mean(0)
    assert red[: small[0] // 3].min() > 200
    assert red[-(small[0] // 3) :].max() < 50


def test_each_frame_of_a_strip_is_as_large_as_a_photograph() -> None:
    strip = Image.new("RGB", (8 * 400, 200))
    strip.info["columns"] = 8
    _, data = html.data_uri(strip, 100).split(",")
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (8 * 100, 50)


def test_many_thumbnails_are_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (4, 90, 120, 3), np.uint8)
    pool = System.of("a", np.eye(4, dtype=np.float32), np.arange(4))
    gallery = Gallery(pool, list("vwxy"), list("0123"), lambda row: Image.fromarray(noise[row]))

    def shown() -> tuple[set[tuple[int, int]], int]:
        found = gather({"a": gallery}, ("a", "a"), Report(queries=9, top=4, thumbnail=100))
        thumbs = [image["thumb"] for image in found["images"]]
        sizes = {
            Image.open(io.BytesIO(base64.b64decode(thumb.split(",")[1]))).size for thumb in thumbs
        }
        return sizes, sum(map(len, thumbs))

    sizes, taken = shown()
    assert sizes == {(100, 75)}
    monkeypatch.setattr(explorer, "THUMBNAILS", taken // 3)
    ((width, height),), smaller = shown()
    assert taken / 6 < smaller <= taken / 3
    assert (width, height) == (width, round(width * 0.75))
    monkeypatch.setattr(explorer, "THUMBNAILS", 0)
    assert shown()[0] == {(16, 12)}

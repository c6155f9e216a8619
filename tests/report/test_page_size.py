"""The page of COCO's 5,000 images and 25,000 captions, with the settings as they ship, stays below
12 MB.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipeline.foundation.settings import Report
from pipeline.judge.systems.scores.system import System
from pipeline.run.report.examples import Gallery
from pipeline.run.report.page import explorer
from pipeline.run.report.page.identity import Identity
from pipeline.run.report.page.render import Page, render

IMAGES, CAPTIONS, PARTS = 250, 5, 20
SYSTEMS = ("region", "grid", "RG")


def page_of(explorer_data: dict[str, Any]) -> Page:
    return {
        "title": "COCO",
        "about": "",
        "licence": "",
        "finding": None,
        "identity": Identity({}),
        "headlines": [],
        "pairs": [],
        "curves": [],
        "further_curves": [],
        "effects": [],
        "hubs": [],
        "explorer": explorer_data,
        "relevance": "",
        "run": "",
        "failures": [],
        "stores": [],
        "provenance": {},
    }


def part() -> dict[str, Any]:
    """A twentieth of it: captions as long as COCO's, ranks of every size, photographs that do not
    compress.
    """
    draws = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(draws.choice(letters, draws.integers(2, 9))) for _ in range(2000)]
    texts = [
        " ".join(words[min(int(place), 1999)] for place in draws.zipf(1.3, 10))
        for _ in range(IMAGES * CAPTIONS)
    ]
    owner = np.arange(IMAGES).repeat(CAPTIONS)
    right = np.arange(IMAGES)[:, None] == owner

    def photograph(row: int) -> Image.Image:
        noise = np.random.default_rng(row).integers(0, 256, (96, 128, 3), np.uint8)
        return Image.fromarray(noise)

    def gallery(name: str) -> Gallery:
        scores = (draws.normal(size=right.shape) + 2 * right).astype(np.float32)
        return Gallery(System.of(name, scores, owner), texts, files, photograph)

    files = [f"COCO_val2014_{number:012}.jpg" for number in draws.integers(10**6, size=IMAGES)]
    asked = Report(queries=60 // PARTS, top=5, thumbnail=128)
    return explorer.gather({name: gallery(name) for name in SYSTEMS}, SYSTEMS[:2], asked)


def whole(data: dict[str, Any]) -> dict[str, Any]:
    """As many parts as make 25,000 captions: what gzip would find again in the next part is in
    another order there.
    """
    draws = np.random.default_rng(1)

    def shuffled(values: list[Any]) -> list[Any]:
        return [values[place] for _ in range(PARTS) for place in draws.permutation(len(values))]

    queries = {
        way: {
            name: [shuffled(each) for each in values]
            if name == "ranks"
            else values and shuffled(values)
            for name, values in of_way.items()
        }
        for way, of_way in data["queries"].items()
    }
    repeated = {name: data[name] * PARTS for name in ("files", "images", "captions", "t2i", "i2t")}
    return data | repeated | {"queries": queries}


@pytest.mark.slow
def test_the_page_of_25_000_queries_has_less_than_12_mb(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = explorer.THUMBNAILS
    monkeypatch.setattr(explorer, "THUMBNAILS", limit // PARTS)
    data = whole(part())
    assert (len(data["queries"]["t2i"]["texts"]), len(data["queries"]["i2t"]["ids"])) == (
        25_000,
        5_000,
    )
    assert len(data["t2i"]) == 60 * CAPTIONS
    photographs = sum(len(image["thumb"]) for image in data["images"])
    assert photographs < limit
    assert len(render(page_of(data)).encode()) - photographs + limit < 12_000_000

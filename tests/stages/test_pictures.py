"""README's pictures show what a run writes today: each keeps its numbers
(tests/docs/pictures.py).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plans
import pytest
from PIL import Image

from pipeline.foundation import settings
from pipeline.foundation.manifest.sample import corpus

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"


def shown(picture: str, text: str = "data") -> str:
    """The numbers that a picture keeps, or another of its texts."""
    with Image.open(DOCS / f"{picture}.png") as image:
        return str(image.text[text])


def layout(table: str) -> list[str]:
    """The lines of a table without bold and measured numbers."""
    return [
        re.sub(r"\d[\d.,]*", "#", line.replace("*", ""))
        for line in table.splitlines()
        if line[:1] == "|"
    ]


def test_pictures_are_of_todays_settings_recipes_and_code(
    pipeline: Callable[..., Any], tmp_path: Path
) -> None:
    """What its numbers follow from is compared: these differ from CPU to CPU, and the whole sample
    takes minutes.
    """
    assert pipeline("lab", "plan")[0] == 0
    today = plans.of_numbers(tmp_path / "results/plan")
    for picture in ("table", "figure", "report"):
        assert json.loads(shown(picture, "plan")) == today, picture


@pytest.mark.parametrize("picture", ["figure", "report"])
def test_photographs_have_all_their_colours(picture: str) -> None:
    with Image.open(DOCS / f"{picture}.png") as image:
        assert image.mode == "RGB"


def test_the_tables_picture_shows_todays_table(finished: Path) -> None:
    kept, fresh = (
        shown("table"),
        (finished / "results/tables/vse2ad_table1.md").read_text(encoding="utf-8"),
    )
    published = fresh[: fresh.index("\n\nRetrieval on the sample")]
    assert len(published.splitlines()) > 20
    assert kept.startswith(published)
    assert layout(kept) == layout(fresh)


def test_the_figures_picture_shows_todays_figure_and_sample(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = list(csv.DictReader(io.StringIO(shown("figure"))))
    with (finished / "results/figures/retrieved_images.csv").open(encoding="utf-8") as file:
        assert list(rows[0]) == csv.DictReader(file).fieldnames
    assert len({row["caption"] for row in rows}) == 4
    monkeypatch.setattr(corpus, "paint", lambda *_: Image.new("RGB", (1, 1)))  # the captions alone
    sample = settings.load(DOCS.parent / "params.yaml").sample
    listing = json.loads(
        corpus.render(tmp_path, sample.images, sample.size, sample.seed).read_text(encoding="utf-8")
    )
    owners = {
        sentence["raw"]: image["filename"]
        for image in listing["images"]
        for sentence in image["sentences"]
    }
    assert all((owners[row["caption"]] == row["file"]) == (row["right"] == "True") for row in rows)

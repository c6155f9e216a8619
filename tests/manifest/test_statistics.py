"""What a card states of each split is compared with what a manifest holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pipeline.foundation import manifest
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.columns import COLUMNS
from pipeline.foundation.manifest.dataset import Dataset, Statistics
from pipeline.foundation.manifest.statistics import statistics_of

CAPTIONS = ["a dog", "a dog", "two dogs run", "çàt"]


@pytest.fixture
def table() -> Manifest:
    """Two images of train with two captions each; the first one's are equal."""
    rows = [
        (image, f"{image}.jpg", 9, "train", 2 * image + k, CAPTIONS[2 * image + k])
        for image in range(2)
        for k in range(2)
    ]
    return Manifest(pd.DataFrame(rows, columns=list(COLUMNS)), "own", Path())


def test_a_split_is_counted(table: Manifest) -> None:
    assert statistics_of(table) == {
        "train": Statistics(images=2, captions=4, unique_captions=3, shortest=3, longest=12)
    }


def test_many_captions_are_counted() -> None:
    rows = pd.DataFrame(
        {
            "image_id": range(500),
            "file": [f"{image}.jpg" for image in range(500)],
            "bytes": 9,
            "split": "train",
            "caption_id": range(500),
            "caption": [f"caption {image % 400}" for image in range(500)],
        }
    )
    assert statistics_of(Manifest(rows, "own", Path()))["train"].unique_captions == 400


def card_of(**stated: Any) -> Dataset:
    return Dataset.model_validate({**manifest.dataset("own", Path()).model_dump(), **stated})


@pytest.mark.specification
@pytest.mark.parametrize(
    ("stated", "differing", "alike"),
    [
        ({}, [], []),
        (
            {
                "train": {
                    "images": 2,
                    "captions": 4,
                    "unique_captions": 3,
                    "shortest": 3,
                    "longest": 12,
                }
            },
            [],
            [
                "images, captions, unique captions, characters of the shortest caption, characters of the longest caption "
                "(train)"
            ],
        ),
        (
            {"train": {"unique_captions": 4, "longest": 12}},
            ["train: unique captions: expected 4, found 3"],
            ["characters of the longest caption (train)"],
        ),
        (
            {"train": {"longest": 11}},
            ["train: characters of the longest caption: expected 11, found 12"],
            [],
        ),
        (
            {"val": {"images": 1, "captions": 0}},
            ["val: images: expected 1, found 0"],
            ["captions (val)"],
        ),
    ],
)
def test_what_differs_from_the_card_and_what_agrees_is_said(
    table: Manifest, stated: dict[str, Any], differing: list[str], alike: list[str]
) -> None:
    assert manifest.compared(card_of(statistics=stated), table)[:2] == (differing, alike)


@pytest.mark.parametrize(
    ("stated", "here", "differing", "alike", "left"),
    [
        ([], ["en"], [], [], []),
        (["EN"], ["en"], [], ["languages"], []),
        (["de"], ["en"], ["languages: expected de, found en"], [], []),
        (["en"], ["de", "en"], ["languages: expected en, found de, en"], [], []),
        (["en"], [], [], [], ["languages: the annotations do not name them"]),
        (["en", "de"], [], ["languages: expected de, en, found none"], [], []),
    ],
)
def test_languages_are_compared_with_the_cards(
    table: Manifest,
    stated: list[str],
    here: list[str],
    differing: list[str],
    alike: list[str],
    left: list[str],
) -> None:
    if here:
        table = Manifest(
            table.table.assign(language=[here[0], *here, here[0], here[0]][:4]), "own", Path()
        )
    assert manifest.compared(card_of(languages=stated), table) == (differing, alike, left)


@pytest.mark.parametrize(
    "name", [name for name in manifest.datasets(Path()) if not name.startswith("sample")]
)
def test_every_public_data_set_says_whom_to_cite_and_how_to_check_a_copy(name: str) -> None:
    card = manifest.dataset(name, Path())
    assert card.licence
    assert card.source
    assert card.languages
    assert card.revision
    assert card.bibtex.count("{") == card.bibtex.count("}") > 0
    assert card.statistics["test"].images
    complete = all(None not in each.model_dump().values() for each in card.statistics.values())
    assert complete == (not card.unstated)

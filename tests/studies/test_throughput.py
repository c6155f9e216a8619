"""Throughput: every recipe timed once for what it shares, stated how, ordered as the work is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch

from pipeline import settings
from pipeline.errors import InputError
from pipeline.studies import throughput
from pipeline.studies.throughput import seconds

SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml")
SMALL = SETTINGS.throughput.model_copy(update={
    "batch_size": 4, "items": 6, "tokens": 5, "candidates": 50, "pools": [20, 2000], "pairs": 1, "repeats": 1,
    "seconds": 0.0})
TRAINING = SETTINGS.training_of("sample").model_copy(update={"dimension": 16, "word_dimension": 8})
RECIPE = SETTINGS.recipe("vse2ad")


def test_seconds_are_the_least_of_several_runs() -> None:
    naps = iter([0.3, 0.05, 0.02, 0.06, 0.05, 0.05, 0.05, 0.05, 0.05])
    taken = seconds(lambda: time.sleep(next(naps)), "cpu", repeats=3, at_least=0.2)
    assert 0.02 <= taken < 0.045


def test_every_recipe_is_there_and_shared_parts_are_timed_once() -> None:
    mean = RECIPE.model_copy(update={"image_pooling": settings.Named(name="mean")})
    recipes = {"vse2ad": RECIPE, "copy": RECIPE, "mean": mean}
    told: list[str] = []
    measured = throughput.measure(recipes, TRAINING, SMALL, told.append)
    assert told == ["images by adpool", "images by mean", "caption by adpool", "caption by BiGRU", "caption by BERT",
                    "search 50 images", "search 20 images", "search 2,000 images", "cross-encoder"]
    assert measured["poolings"].keys() == recipes.keys()
    assert measured["poolings"]["vse2ad"] == measured["poolings"]["copy"] != measured["poolings"]["mean"]
    assert measured["retrieval"].keys() == {"cross-encoder"} | {
        f"{recipe}-{text}" for recipe in recipes for text in ("bigru", "bert")}
    assert measured["retrieval"]["vse2ad-bert"] < measured["retrieval"]["vse2ad-bigru"]
    assert min(measured["retrieval"], key=measured["retrieval"].get) == "cross-encoder"
    assert [row["images"] for row in measured["pools"]] == [20, 2000]
    for row in measured["pools"]:
        assert row["ensemble"] == pytest.approx(3 * row["head"])
        assert row["cross_encoder"] == pytest.approx(row["images"] / measured["retrieval"]["cross-encoder"])
    assert "4 images of 6 items, d = 16" in measured["methods"]["poolings"]
    assert "50 images" in measured["methods"]["retrieval"]
    assert {"machine", "processor", "torch"} <= measured["made_with"].keys()


def test_a_search_finds_the_most_similar() -> None:
    torch.manual_seed(0)
    found = throughput.search_step(500, 16, "cpu")()
    assert found.values.shape == (throughput.FOUND,)  # type: ignore[attr-defined]
    assert (found.values.diff() <= 0).all()  # type: ignore[attr-defined]


def test_what_is_timed_has_the_sizes_that_are_stated() -> None:
    assert throughput.bigru_step(TRAINING, 5, "cpu")().shape == (1, 5, 16)  # type: ignore[attr-defined]
    assert throughput.pool_step(RECIPE.text_pooling, 16, 3, 5, "cpu")().shape == (3, 16)  # type: ignore[attr-defined]
    assert throughput.transformer_layer_step(2, 7, "cpu")().shape == (2, 7, 768)  # type: ignore[attr-defined]


def test_a_device_that_is_not_there_is_refused() -> None:
    absent = SMALL.model_copy(update={"device": "cuda:99"})
    with pytest.raises(InputError, match=r"throughput\.device 'cuda:99'"):
        throughput.measure({"vse2ad": RECIPE}, TRAINING, absent)

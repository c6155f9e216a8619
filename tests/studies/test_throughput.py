"""Throughput: every recipe timed once for what it shares, stated how, ordered as the work is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch

from pipeline import settings
from pipeline.errors import InputError
from pipeline.studies import throughput
from pipeline.studies.throughput import interleaved

SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml")
SMALL = SETTINGS.throughput.model_copy(update={
    "batch_size": 4, "items": 6, "tokens": 5, "pools": [20, 2000], "pairs": 1, "searched": [20, 3000],
    "reranked": 2, "repeats": 1, "seconds": 0.0})
TRAINING = SETTINGS.training_of("sample").model_copy(update={"dimension": 16, "word_dimension": 8})
RECIPE = SETTINGS.recipe("vse2ad")


def test_seconds_are_the_least_of_rounds_in_which_all_take_turns() -> None:
    order: list[str] = []
    naps = iter([0.05, 0.02, 0.06])

    def slow() -> None:
        order.append("slow")
        time.sleep(0.3 if len(order) == 1 else next(naps))

    taken = interleaved({"slow": slow, "quick": lambda: order.append("quick")}, "cpu", repeats=3, at_least=0.0)
    assert order == ["slow", "quick"] * 4  # once to warm up
    assert 0.02 <= taken["slow"] < 0.045
    assert taken["quick"] < 0.01


def test_short_steps_go_on_until_their_time_is_over() -> None:
    runs: list[int] = []
    interleaved({"short": lambda: (runs.append(1), time.sleep(0.01))}, "cpu", repeats=1, at_least=0.1)
    assert 4 <= len(runs) <= 11


def test_every_recipe_is_there_and_shared_parts_are_timed_once() -> None:
    mean = RECIPE.model_copy(update={"image_pooling": settings.Named(name="mean")})
    recipes = {"vse2ad": RECIPE, "copy": RECIPE, "mean": mean}
    told: list[str] = []
    measured = throughput.measure(recipes, TRAINING, SMALL, told.append)
    assert [what.split(", {")[0] for what in told] == [
        "images by adpool", "images by mean", "caption pooled", "caption by BiGRU", "cross-encoder", "reranked pairs",
        "search 20 images", "search 2,000 images", "search 3,000 images"]
    assert measured["poolings"].keys() == recipes.keys()
    assert measured["poolings"]["vse2ad"] == measured["poolings"]["copy"] != measured["poolings"]["mean"]
    assert [row["images"] for row in measured["pools"]] == [20, 2000]
    for row in measured["pools"]:
        assert row["ensemble"] == pytest.approx(3 * row["head"])
        assert row["cross_encoder"] > 0
    latency = measured["latency"]
    assert latency["search"].keys() == {"20", "3000"}
    assert latency["pairs"] == 2
    assert min(latency["rerank"], latency["encode"], latency["images_per_second"]) > 0
    assert "2 pairs of 6 items and 5 tokens" in measured["methods"]["latency"]
    assert "4 images of 6 items, 𝑑 = 16" in measured["methods"]["poolings"]
    assert {"machine", "processor", "torch"} <= measured["made_with"].keys()
    assert measured["busy"] in (True, False)


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

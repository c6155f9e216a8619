"""Throughput: every recipe timed once for what it shares, stated how, ordered as the work is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.run.studies import throughput
from pipeline.run.studies.throughput import interleaved
from stages import studies

SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml")
SMALL = SETTINGS.throughput.model_copy(
    update={
        "batch_size": 4,
        "items": 6,
        "tokens": 5,
        "pools": [20, 2000],
        "pairs": 1,
        "searched": [20, 3000],
        "reranked": 2,
        "repeats": 1,
        "seconds": 0.0,
    }
)
TRAINING = SETTINGS.training_of("sample").model_copy(update={"dimension": 16, "word_dimension": 8})
RECIPE = SETTINGS.recipe("vse2ad")


class Clock:
    """A clock that only `pass_` moves. It stands for the module `time` in `throughput`."""

    now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(throughput, "time", made)
    return made


def test_seconds_are_the_least_of_rounds_in_which_all_take_turns(clock: Clock) -> None:
    order: list[str] = []
    lasts = {
        "slow": iter([1.0, 8.0, 4.0, 6.0]),
        "quick": iter([0.25, 2.0, 2.0, 0.5]),
    }  # the first of each warms up

    def step(name: str) -> Callable[[], None]:
        return lambda: (order.append(name), clock.pass_(next(lasts[name])))[1]

    taken = interleaved({name: step(name) for name in lasts}, "cpu", repeats=3, at_least=0.0)
    assert order == ["slow", "quick"] * 4
    assert taken == {"slow": 4.0, "quick": 0.5}


def test_short_steps_go_on_until_their_time_is_over(clock: Clock) -> None:
    runs = {"short": 0, "long": 0}

    def step(name: str, seconds: float) -> Callable[[], None]:
        def run() -> None:
            runs[name] += 1
            clock.pass_(seconds)

        return run

    interleaved(
        {"short": step("short", 0.25), "long": step("long", 2.0)}, "cpu", repeats=1, at_least=1.0
    )
    assert runs == {"short": 1 + 4, "long": 1 + 1}


@pytest.mark.slow
def test_every_recipe_is_there_and_shared_parts_are_timed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = iter([0.5, 0.25, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])

    def each_once(
        steps: Mapping[str, Callable[[], object]],
        device: str,
        repeats: int,
        at_least: float,
        progress: Callable[[str], object],
    ) -> dict[str, float]:
        interleaved(steps, device, repeats, at_least, progress)
        return {name: next(seconds) for name in steps}

    monkeypatch.setattr(throughput, "interleaved", each_once)
    monkeypatch.setattr(throughput.machine, "others", lambda *both: 1e6)
    mean = RECIPE.model_copy(update={"image_pooling": settings.PoolingSettings(name="mean")})
    recipes = {"vse2ad": RECIPE, "copy": RECIPE, "mean": mean}
    reported: list[str] = []
    measured = throughput.measure(recipes, TRAINING, SMALL, reported.append)
    assert [what.split(", {")[0] for what in reported] == [
        "images by adpool",
        "images by mean",
        "caption pooled",
        "caption by BiGRU",
        "cross-encoder",
        "reranked pairs",
        "search 20 images",
        "search 2,000 images",
        "search 3,000 images",
    ]
    assert measured["poolings"] == {
        "vse2ad": 4 / 0.5,
        "copy": 4 / 0.5,
        "mean": 4 / 0.25,
    }  # of 4 images
    encoded, layers = 1.0 + 2.0, 12
    assert measured["pools"] == [
        {
            "images": count,
            "head": encoded + found,
            "ensemble": 3 * (encoded + found),
            "cross_encoder": pytest.approx(count * 3.0 * layers),
        }
        for count, found in ((20, 5.0), (2000, 6.0))
    ]
    assert measured["latency"] == {
        "images_per_second": 8.0,
        "encode": encoded,
        "search": {"20": 5.0, "3000": 7.0},
        "pairs": 2,
        "rerank": 4.0 * layers,
    }
    assert "2 pairs of 6 items and 5 tokens" in measured["methods"]["latency"]
    assert "4 images of 6 items, 𝑑 = 16" in measured["methods"]["poolings"]
    assert {"machine", "processor", "torch"} <= measured["made_with"].keys()
    assert (measured["others"], measured["busy"]) == (1e6, True)


def test_a_search_finds_the_most_similar() -> None:
    torch.manual_seed(0)
    found = throughput.search_step(500, 16, "cpu")()
    assert found.scores.shape == (1, throughput.FOUND)  # type: ignore[attr-defined]
    assert (found.scores[:, 1:] <= found.scores[:, :-1]).all()  # type: ignore[attr-defined]


def test_what_is_timed_has_the_sizes_that_are_stated() -> None:
    assert throughput.bigru_step(TRAINING, 5, "cpu")().shape == (1, 5, 16)  # type: ignore[attr-defined]
    assert throughput.pool_step(RECIPE.text_pooling, 16, 3, 5, "cpu")().shape == (3, 16)  # type: ignore[attr-defined]
    assert throughput.transformer_layer_step(2, 7, "cpu")().shape == (2, 7, 768)  # type: ignore[attr-defined]


def test_a_device_that_is_not_there_is_refused() -> None:
    absent = SMALL.model_copy(update={"device": "cuda:99"})
    with pytest.raises(InputError, match=r"throughput\.device 'cuda:99'"):
        throughput.measure({"vse2ad": RECIPE}, TRAINING, absent)


def test_the_slowest_and_the_fastest_pooling_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = {"mean": 9000.0, "gpo": 20.4, "adpool": 300.0}
    machine = {"processor": "a processor", "machine": "a machine"}
    measured = {"made_with": machine, "poolings": rates, "busy": False}
    monkeypatch.setattr(throughput, "measure", lambda *_: dict(measured))
    options = studies.ThroughputOptions(retriever=None, scorer=None)
    studies.measure_throughput(Paths(tmp_path), SETTINGS, options)
    out = capsys.readouterr().out
    assert "images pooled a second: from 20 (gpo) to 9,000 (mean)" in out
    assert json.loads((tmp_path / "results" / "throughput.json").read_text()) == measured


def test_a_cross_encoder_reads_an_images_items_and_a_captions_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[tuple[int, int]] = []

    def noted(inputs: int, positions: int, device: str) -> Callable[[], object]:
        sizes.append((inputs, positions))
        return lambda: None

    monkeypatch.setattr(throughput, "transformer_layer_step", noted)
    steps = throughput._steps_of_query(RECIPE, TRAINING, SMALL)
    assert sizes == [(1, 6 + 5), (2, 6 + 5)]  # one pair, then those that are reranked
    searches = [name for name in steps if name.startswith("search")]
    assert searches == ["search 20 images", "search 2,000 images", "search 3,000 images"]


@pytest.mark.parametrize(
    ("captions", "median"),
    [
        ({7: "a dog", 3: "a", 5: "a dog on a bench"}, 7),
        ({7: "a dog", 3: "a", 5: "a dog on a bench", 4: "two small dogs"}, 4),
        ({9: "a bit long", 8: "short", 2: "a bit long"}, 9),  # of equal texts the first
        ({6: "alone"}, 6),
    ],
)
def test_the_caption_that_is_timed_has_the_median_length(
    captions: dict[int, str], median: int
) -> None:
    table = pd.DataFrame({"caption_id": [*captions, 99], "caption": [*captions.values(), "x" * 99]})
    manifest: Any = SimpleNamespace(rows=lambda columns: table[columns])
    found = throughput._of_median_length(manifest, np.array([*captions]))
    assert found == (median, captions[median])


def test_the_pairs_that_are_timed_are_of_the_caption_that_was_searched(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """Of three images the best two; a search takes 0.5 s and their scoring 1.5 s."""
    vectors = np.eye(3, dtype=np.float32)
    asked: list[tuple[list[int], list[int]]] = []

    def embed(captions: list[str], size: int) -> np.ndarray:
        clock.pass_(0.5)
        assert captions == ["a dog"]
        return np.array([[0.1, 0.2, 0.9]], np.float32)

    def score(image_ids: np.ndarray, caption_ids: np.ndarray) -> np.ndarray:
        clock.pass_(1.5)
        asked.append((image_ids.tolist(), caption_ids.tolist()))
        return np.zeros(len(image_ids))

    head = SimpleNamespace(checkpoint="c", embed_captions=embed)
    store = SimpleNamespace(
        checkpoints=["c"],
        vectors=lambda side: vectors,
        image_ids=np.array([10, 20, 30]),
        caption_ids=np.array([5, 6, 7]),
        path="s",
    )
    table = pd.DataFrame({"caption_id": [5, 6, 7], "caption": ["a", "a dog", "a dog on a bench"]})
    manifest = SimpleNamespace(rows=lambda columns: table[columns])
    monkeypatch.setattr(throughput.training_room.Head, "open", lambda *given: head)
    monkeypatch.setattr(throughput.System, "open_vectors", lambda path: store)
    monkeypatch.setattr(throughput.Manifest, "load", lambda path: manifest)
    monkeypatch.setattr(throughput.reranking, "resolve", lambda *given: ("system", "s"))
    monkeypatch.setattr(throughput.reranking, "build", lambda *given: SimpleNamespace(score=score))
    source: Any = SimpleNamespace(
        paths=Paths(Path("nowhere")), dataset="d", split="test", device="cpu"
    )
    found = throughput.measure_query(source, "mine", "s", SMALL)
    assert {repr(pair) for pair in asked} == {repr(([30, 20], [6, 6]))}
    assert (found["images"], found["k"]) == (3, 2)
    assert (found["retrieve"], found["both"], found["ratio"]) == (0.5, 2.0, 4.0)

"""Every detector of `transformers` that gives boxes: as its library selects, whatever its batch."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tiny_detectors
import torch
from PIL import Image

from pipeline.extensions.detector import hugging_face
from pipeline.make.features import extractors
from pipeline.make.features.extractors import Runtime

pytestmark = pytest.mark.slow

PROMPTS = ["a dog", "cat"]
# In the installed mapping, but without boxes of four numbers: see docs/detectors.md.
NO_BOXES = {
    "pp_doclayout_v4",
    "pp_ocrv5_mobile_det",
    "pp_ocrv5_server_det",
    "pp_ocrv6_medium_det",
    "pp_ocrv6_small_det",
}
EVERY = [*tiny_detectors.CLOSED, *tiny_detectors.PROMPTED]


def photographs(count: int) -> list[Image.Image]:
    random = np.random.default_rng(0)
    sizes = random.integers(40, 100, (count, 2))
    return [
        Image.fromarray(random.integers(0, 256, (3, 4, 3), np.uint8)).resize(size)
        for size in sizes.tolist()
    ]


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return cache(
        lambda kind: build(tiny_detectors.written(tmp_path_factory.mktemp(kind), kind), kind)
    )


def build(folder: Path, kind: str, **options: Any) -> Any:
    prompts = {"prompts": PROMPTS} if kind in tiny_detectors.PROMPTED else {}
    return extractors.build("detector", {"weights": str(folder), **prompts, **options}, Runtime())


def test_every_entry_of_the_mappings_is_tried_or_gives_no_boxes() -> None:
    assert {*hugging_face.CLOSED, *hugging_face.PROMPTED} == {
        *EVERY,
        *tiny_detectors.PAGES,
        *NO_BOXES,
    }


@pytest.mark.parametrize("kind", EVERY)
def test_what_is_found_is_what_the_librarys_own_post_processing_gives(
    kind: str, engines: Any
) -> None:
    engine = engines(kind)
    for photograph in photographs(2):
        size = photograph.size
        library = of_library(engine.finder, photograph)
        scores = library(0.0)["scores"].sort().values
        gap = int(scores.diff().argmax())
        threshold = float(
            scores[gap : gap + 2].mean()
        )  # between two that rounding does not exchange
        with torch.inference_mode():
            (found,) = engine.finder.find([engine.prepare(photograph).inputs], [size])
        boxes = (
            found.boxes.clamp(min=0).minimum(torch.tensor(size * 2))
            if kind == "omdet-turbo"
            else found.boxes
        )
        ours = {
            tuple(box): (score, label)
            for box, score, label in zip(
                boxes.tolist(), found.scores.tolist(), found.labels.tolist(), strict=True
            )
            if score > threshold
        }
        given, first = library(threshold), dict[Any, Any]()
        for box, *what in zip(
            *(given[name].tolist() for name in ("boxes", "scores", "labels")), strict=True
        ):
            first.setdefault(tuple(box), tuple(what))  # a box may come back with further classes
        assert len(ours) == len(first) > 0
        for (box, (score, label)), (its_box, (its_score, its_label)) in zip(
            *(
                sorted(each.items(), key=lambda item: item[1], reverse=True)
                for each in (ours, first)
            ),
            strict=True,
        ):
            np.testing.assert_allclose(
                np.array(box) / max(size), np.array(its_box) / max(size), atol=1e-5
            )
            assert (score, label) == (pytest.approx(its_score, abs=1e-5), its_label)


@torch.inference_mode()
def of_library(finder: Any, photograph: Image.Image) -> Callable[[float], Any]:
    """The library's own way from a photograph to detections above a threshold, with the network of
    an engine.
    """
    images, sizes = finder.processor, [(photograph.height, photograph.width)]
    if finder.kind in tiny_detectors.CLOSED:
        out = finder.network(**images(images=photograph, return_tensors="pt"))
        select = images.post_process_object_detection
        pairs = {"top_k": 60} if "top_k" in inspect.signature(select).parameters else {}
        return lambda threshold: select(out, threshold=threshold, target_sizes=sizes, **pairs)[0]
    text: Any = "a dog. cat." if "grounding" in finder.kind else [PROMPTS]
    out = finder.network(**images(images=photograph, text=text, return_tensors="pt"))
    if finder.kind == "omdet-turbo":
        return lambda threshold: images.post_process_grounded_object_detection(
            out, [[0, 1]], threshold, nms_threshold=1.0, target_sizes=sizes
        )[0]
    return lambda threshold: images.image_processor.post_process_object_detection(
        out, threshold=threshold, target_sizes=sizes
    )[0]


@pytest.mark.parametrize("kind", [*EVERY, *tiny_detectors.PAGES])
def test_features_do_not_depend_on_the_batch(kind: str, engines: Any) -> None:
    engine = engines(kind)
    some = photographs(2)
    for items in ("regions", "queries"):
        alone, together = (copy.copy(engine), copy.copy(engine))
        alone.options = together.options = engine.options.model_copy(
            update={"items": items, "max_boxes": 6}
        )
        together.finder = copy.copy(engine.finder)
        together.finder.at_once = 1 if kind in tiny_detectors.PROMPTED else 16  # as on a GPU
        batch, sizes = (
            [engine.prepare(each) for each in some + some[:1]],
            [each.size for each in some + some[:1]],
        )
        first, second = (alone.extract([batch[at]], [sizes[at]])[0] for at in range(2))
        of_each = (first, second, first)
        for each, single, size in zip(together.extract(batch, sizes), of_each, sizes, strict=True):
            np.testing.assert_allclose(each.features, single.features, atol=2e-5)
            np.testing.assert_allclose(each.extras["boxes"], single.extras["boxes"], atol=1e-3)
            assert len(single.features) == len(single.extras["object"]) <= 6
            assert (single.extras["boxes"] >= 0).all()
            assert (single.extras["boxes"] <= np.array(size * 2)).all()


def test_vectors_of_queries_stand_behind_those_of_patches() -> None:
    finder: Any = SimpleNamespace(_hooked={})
    vectors = torch.randn(2, 7, 4)
    for out in ({"last_hidden_state": vectors}, {"class_embeds": vectors}):
        found = hugging_face.HuggingFace._queries(finder, out, 3)
        torch.testing.assert_close(found, vectors[:, 4:])
    finder._hooked["decoder"] = (None, [torch.zeros(2, 3, dtype=torch.int64), vectors])
    torch.testing.assert_close(hugging_face.HuggingFace._queries(finder, {}, 7), vectors)
    finder._hooked.clear()
    assert hugging_face.HuggingFace._queries(finder, {}, 7) is None

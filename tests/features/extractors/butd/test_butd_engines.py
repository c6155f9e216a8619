"""The engines from end to end with an untrained network: through extraction into a store, and by
hand.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from shallow import shallow

from pipeline.foundation import manifest
from pipeline.foundation.files import weights
from pipeline.foundation.files.digest import sha256
from pipeline.foundation.files.images import ImageError
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features import extraction, extractors
from pipeline.make.features.extraction import worker
from pipeline.make.features.extractors import Runtime, base
from pipeline.make.features.extractors.butd import checkpoint, detector
from pipeline.make.features.extractors.butd.options import DetectedOptions
from pipeline.make.features.extractors.given_boxes import GivenBoxes
from pipeline.make.features.store import FeatureStore

pytestmark = pytest.mark.slow

SMALL = {"weights": "untrained", "short_side": 96, "long_side": 160}
EXTRAS = {"boxes", "object", "object_score", "attribute", "attribute_score"}


@pytest.fixture(autouse=True, scope="module")
def _one_network() -> Iterator[None]:
    """Engines share one network of one block a stage, and its digest."""
    with pytest.MonkeyPatch.context() as patch:
        shallow(patch)
        network = checkpoint.load("untrained")
        digest = weights.digest(network)
        patch.setattr(checkpoint, "load", lambda name: network)
        patch.setattr(weights, "digest", lambda module: digest)
        yield
    worker._loaded.clear()


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> manifest.Manifest:
    """Four images of noise, the second so small that few boxes fit into it, the last too narrow for
    any.
    """
    folder = tmp_path_factory.mktemp("scenes")
    noise = np.random.default_rng(0)
    names = {
        "a b.png": (80, 60),
        "tiny.png": (18, 17),
        "high.png": (50, 90),
        "thread.png": (400, 2),
    }
    for name, (width, height) in names.items():
        pixels = noise.integers(0, 255, (height // 2 + 1, width // 2 + 1, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((width, height)).save(folder / name)
    with (folder / "captions.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("image", "caption", "split"), *((name, "noise", "train") for name in names)]
        )
    return manifest.build("noise", folder, folder / "captions.csv")


def job(
    scenes: manifest.Manifest, store: Path, name: str, **options: object
) -> extraction.ExtractionJob:
    engine = extraction.EngineSpec(name, {**SMALL, **options}, Runtime())
    return extraction.ExtractionJob(
        scenes, scenes.images_folder, store, engine, batch_size=2, shard_images=3, on_error="skip"
    )


def test_extraction_stores_variable_numbers_of_boxes_with_what_they_show(
    scenes: manifest.Manifest, tmp_path: Path
) -> None:
    work = job(
        scenes, tmp_path / "region.zarr", "butd-10-100", min_boxes=4, max_boxes=6, proposals=8
    )
    outcome = extraction.extract(work)
    assert list(outcome.failed) == [3]
    assert "too narrow" in outcome.failed[3]
    store = FeatureStore(tmp_path / "region.zarr")
    assert store.fingerprint["recipe"] == "butd-4-6-proposals-96px-160px-rpn8-untrained"
    assert store.fingerprint["trained"] is False
    assert store.layout.items == 6
    assert set(store.layout.extras) == EXTRAS
    # Untrained, no class reaches the confidence: each image has the fewest, the tiny one what it
    # holds.
    counts = store.counts.tolist()
    assert counts[0] == counts[2] == 4
    assert 1 <= counts[1] < 4
    features, _ = store.read(np.arange(3))
    boxes = store.extra("boxes", np.arange(3))
    for row, (count, (width, height)) in enumerate(
        zip(counts[:3], [(80, 60), (18, 17), (50, 90)], strict=True)
    ):
        assert features[row, :count].any(axis=1).all()
        assert not features[row, count:].any()
        assert (boxes[row, :count, :2] >= 0).all()
        assert (boxes[row, :count, 2:] < (width, height)).all()
        assert (
            boxes[row, :count, 2:] - boxes[row, :count, :2] > 14
        ).all()  # 16 px, the ends' pixels included
    assert (store.extra("object_score", np.arange(3))[0, :4] > 0).all()
    assert extraction.extract(replace(work)).extracted == 0


def test_items_are_the_networks_regions_of_their_boxes() -> None:
    picture = Image.fromarray(
        np.random.default_rng(1).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    )
    engine = detector.Detected(
        Runtime(), DetectedOptions(**SMALL, min_boxes=5, max_boxes=5, proposals=12)
    )
    assert (engine.items, engine.dimension, engine.reported_as) == (
        5,
        2048,
        "butd-5-proposals-96px-160px-rpn12",
    )
    prepared = engine.prepare(picture)
    assert prepared.shape == (3, 96, 128)
    found = engine.extract([prepared], [picture.size])[0]
    assert found.features.shape == (5, 2048)
    assert found.features.dtype == np.float32
    assert {name: found.extras[name].dtype for name in EXTRAS} == {
        name: np.dtype(extra.dtype) for name, extra in engine.extras.items()
    }
    with torch.inference_mode():
        feature_map = map_of(engine, prepared)
        regions = engine.regions(feature_map, torch.from_numpy(found.extras["boxes"]) * 1.6)
    np.testing.assert_allclose(found.features, regions.features, atol=1e-5)
    np.testing.assert_array_equal(found.extras["object"], regions.objects.argmax(dim=1))
    np.testing.assert_allclose(
        found.extras["attribute_score"], regions.attributes.amax(dim=1), atol=1e-6
    )


def map_of(network: detector.Detector, prepared: torch.Tensor) -> torch.Tensor:
    ((_, feature_map),) = network.feature_maps([prepared])
    return feature_map


@pytest.mark.parametrize(("name", "backend"), [("butd-36", "torch"), ("butd-given", "openvino")])
def test_images_of_equal_size_together_give_the_features_of_each_alone(
    name: str, backend: str, tmp_path: Path
) -> None:
    sizes = [(60, 80), (90, 50), (60, 80), (60, 80)]
    noise = np.random.default_rng(5)
    pictures = [
        Image.fromarray(noise.integers(0, 255, (*size, 3), dtype=np.uint8)) for size in sizes
    ]
    np.savez(
        tmp_path / "boxes.npz",
        picture=np.array([[0, 0, 40, 50], [10, 20, 45, 60], [5, 5, 30, 30]], np.float32),
    )
    options = {
        **SMALL,
        **(
            {"boxes": str(tmp_path / "boxes.npz")}
            if name == "butd-given"
            else {"min_boxes": 2, "max_boxes": 2, "proposals": 3}
        ),
    }
    engine: Any = extractors.build(name, options, Runtime(backend=backend))
    for picture in pictures:
        picture.info["file"] = "picture"
    prepared = [engine.prepare(picture) for picture in pictures]
    assert engine.at_once == base.AT_ONCE_ON_CPU == 1
    alone = engine.extract(prepared, [picture.size for picture in pictures])
    sent: list[int] = []
    maps = engine._feature_maps
    engine._feature_maps = lambda pixels: sent.append(len(pixels)) or maps(pixels)
    engine.at_once = 2
    together = engine.extract(prepared, [picture.size for picture in pictures])
    assert sent == [2, 1, 1]  # three of the first size, one of the second
    for expected, got in zip(alone, together, strict=True):
        scale = np.abs(expected.features).max()
        np.testing.assert_allclose(
            got.features / scale, expected.features / scale, rtol=0, atol=1e-6
        )
        np.testing.assert_allclose(got.extras["boxes"], expected.extras["boxes"], rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["butd-36", "butd-given"])
def test_openvino_gives_torchs_regions(name: str, tmp_path: Path) -> None:
    noise = np.random.default_rng(3)
    sizes = (
        ((60, 80), (90, 50)) if name == "butd-given" else ((60, 80),)
    )  # a shape is compiled for a second or two
    pictures = [
        Image.fromarray(noise.integers(0, 255, (*size, 3), dtype=np.uint8)) for size in sizes
    ]
    given_boxes = {"boxes": str(tmp_path / "boxes.npz")}
    np.savez(
        tmp_path / "boxes.npz",
        picture=np.array([[0, 0, 40, 50], [10, 20, 45, 60], [5, 5, 30, 30]], np.float32),
    )
    options = {
        **SMALL,
        **(
            given_boxes
            if name == "butd-given"
            else {"min_boxes": 3, "max_boxes": 3, "proposals": 5}
        ),
    }
    by_torch, ours = (
        extractors.build(name, options, Runtime(backend=backend))
        for backend in ("torch", "openvino")
    )
    for picture in pictures:  # of another shape each: images are not padded
        picture.info["file"] = "picture"
        expected, got = (
            engine.extract([engine.prepare(picture)], [picture.size])[0]
            for engine in (by_torch, ours)
        )
        np.testing.assert_allclose(
            got.features, expected.features, rtol=0, atol=1e-4 * expected.features.max()
        )
        for extra, values in expected.extras.items():
            np.testing.assert_allclose(got.extras[extra], values, rtol=1e-4, atol=1e-4)


def test_regressed_boxes_come_with_the_features_of_their_proposals() -> None:
    picture = Image.fromarray(
        np.random.default_rng(2).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    )
    by = {}
    for boxes in ("proposals", "regressed"):
        options = DetectedOptions(**SMALL, min_boxes=6, max_boxes=6, proposals=6, boxes=boxes)
        engine = detector.Detected(Runtime(), options)
        assert engine.reported_as == f"butd-6-{boxes}-96px-160px-rpn6"
        by[boxes] = engine.extract([engine.prepare(picture)], [picture.size])[0]
    # Of six boxes, six: both rules keep all, in an order of their own.
    proposed, regressed = (
        np.sort(by[boxes].features.sum(axis=1)) for boxes in ("proposals", "regressed")
    )
    np.testing.assert_allclose(proposed, regressed, rtol=1e-5)
    corners = [np.sort(by[boxes].extras["boxes"], axis=0) for boxes in ("proposals", "regressed")]
    assert 0 < np.abs(corners[0] - corners[1]).max() < 3


def test_published_recipes_by_name() -> None:
    names = {}
    for engine in ("butd-36", "butd-10-100"):
        for boxes in ("proposals", "regressed"):
            built = extractors.build(engine, {"weights": "untrained", "boxes": boxes}, Runtime())
            names[built.reported_as] = built.items
            assert (built.options.short_side, built.options.long_side, built.options.proposals) == (
                600,
                1000,
                300,
            )
    assert names == {
        "butd-36-proposals": 36,
        "butd-36-regressed": 36,
        "butd-10-100-proposals": 100,
        "butd-10-100-regressed": 100,
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"boxes": "both"}, "proposals"),
        ({"min_boxes": 40}, "min_boxes <= max_boxes"),
        ({"proposals": 20}, "max_boxes <= proposals"),
        ({"threshold": 0.3}, "unknown option of the engine butd-36, 'threshold'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        extractors.build("butd-36", {**SMALL, **options}, Runtime())


def test_lower_precision_is_close() -> None:
    picture = Image.fromarray(
        np.random.default_rng(3).integers(0, 255, (40, 40, 3), dtype=np.uint8)
    )
    options = DetectedOptions(**SMALL, min_boxes=2, max_boxes=2, proposals=2)
    full, lower = (
        detector.Detected(Runtime(precision=precision), options) for precision in ("fp32", "bf16")
    )
    prepared = full.prepare(picture)
    with torch.inference_mode():
        exact, close = map_of(full, prepared), map_of(lower, prepared)
    assert close.dtype == torch.float32
    assert 0 < (exact - close).abs().max() < 0.05 * exact.abs().max()
    assert lower.extract([prepared], [picture.size])[0].features.dtype == np.float32


def boxes_file(folder: Path, **boxes: object) -> str:
    np.savez(folder / "boxes.npz", **{name: np.asarray(value) for name, value in boxes.items()})
    return str(folder / "boxes.npz")


def test_given_boxes_are_kept_as_they_are(tmp_path: Path) -> None:
    boxes = [[0.0, 0, 79, 59], [10, 5, 30.5, 50]]
    file = boxes_file(tmp_path, **{"a b.png": boxes, "c.png": [[0, 0, 5, 5]]})
    engine = extractors.build("butd-given", {**SMALL, "boxes": file}, Runtime())
    assert (engine.items, engine.reported_as) == (2, "butd-given-96px-160px")
    assert engine.settings["boxes"] == sha256(Path(file))
    picture = Image.fromarray(
        np.random.default_rng(4).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    )
    picture.info["file"] = "a b.png"
    prepared = engine.prepare(picture)
    found = engine.extract([prepared], [picture.size])[0]
    np.testing.assert_array_equal(found.extras["boxes"], np.array(boxes, np.float32))
    with torch.inference_mode():
        feature_map = map_of(engine, prepared)
        expected = engine.regions(feature_map, torch.tensor(boxes) * 1.6)  # 96 / 60
    np.testing.assert_allclose(found.features, expected.features, atol=1e-6)
    np.testing.assert_array_equal(found.extras["object"], expected.objects.argmax(dim=1))


def test_given_boxes_from_end_to_end(scenes: manifest.Manifest, tmp_path: Path) -> None:
    boxes = {"a b.png": [[0, 0, 79, 59], [10, 5, 30, 50], [1, 2, 33, 44]], "high.png": []}
    work = job(scenes, tmp_path / "given.zarr", "butd-given", boxes=boxes_file(tmp_path, **boxes))
    outcome = extraction.extract(work)
    assert outcome.failed.keys() == {1, 3}
    assert outcome.failed[1] == "no boxes are given for tiny.png, but for a b.png, for example"
    store = FeatureStore(work.store).require(scenes)
    assert store.counts.tolist() == [3, 0, 1, 0]
    assert store.extra("boxes", np.array([0]))[0].tolist() == boxes["a b.png"]
    assert store.extra("boxes", np.array([2]))[0][0].tolist() == [0, 0, 50, 90]
    assert store.read(np.array([2, 0]))[0].any(axis=2).tolist() == [
        [True, False, False],
        [True, True, True],
    ]


def test_images_without_fitting_boxes_fail_with_the_reason(tmp_path: Path) -> None:
    file = boxes_file(tmp_path, **{"a.png": [[90, 0, 95, 5]]})
    engine = extractors.build("butd-given", {**SMALL, "boxes": file}, Runtime())
    picture = Image.new("RGB", (80, 60))
    names = {"folder/b.png": "no boxes are given for b.png", "folder/a.png": "outside the image"}
    for name, reason in names.items():
        picture.info["file"] = name
        with pytest.raises(ImageError, match=reason):
            engine.prepare(picture)


@pytest.mark.parametrize(
    ("boxes", "words"),
    [
        ({"a.png": [1.0, 2, 3, 4]}, r"a\.png: expected shape \(n, 4\)"),
        ({"a.png": [[5, 5, 4, 6]]}, "x1 <= x2"),
        ({"a.png": [[0, 0, np.nan, 6]]}, "finite"),
        ({"a.png": np.array([[object()] * 4])}, "not readable"),
        ({"a.png": np.zeros((0, 4))}, "holds no boxes"),
        ({}, "holds no boxes"),
    ],
)
def test_boxes_that_are_none_are_refused(
    tmp_path: Path, boxes: dict[str, object], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        GivenBoxes(Path(boxes_file(tmp_path, **boxes)))


def test_a_missing_boxes_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not readable"):
        GivenBoxes(tmp_path / "none.npz")

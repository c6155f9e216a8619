"""The selection's rule, step by step, and what is pooled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms.functional import normalize, to_tensor

from pipeline.extensions.detector.detector import Detector
from pipeline.extensions.detector.graph import Graph
from pipeline.extensions.detector.options import DetectorOptions
from pipeline.extensions.detector.pooling import FeatureMap
from pipeline.extensions.detector.selection import WHOLE, Found, select
from pipeline.foundation.parts.errors import InputError

pytestmark = pytest.mark.slow

SIZE = (100, 60)
BOXES = [
    [10.0, 10, 50, 50],
    [11, 10, 51, 50],
    [60, 20, 90, 40],
    [-20, -20, 30, 30],
    [120, 10, 130, 20],
]
SCORES = [0.5, 0.9, 0.3, 0.1, 0.8]


def chosen(boxes: Any = BOXES, scores: Any = SCORES, **options: Any) -> list[int]:
    found = Found(torch.tensor(boxes), torch.tensor(scores), torch.arange(len(scores)))
    options = {"min_boxes": 1, "max_boxes": 10, **options}
    return list(select(found, SIZE, DetectorOptions(weights="x", **options)).rows.tolist())


@pytest.mark.specification
def test_the_rule() -> None:
    assert chosen() == [1, 2]  # 0 overlaps the better 1, 3 scores too little, 4 is outside
    assert chosen(confidence=0.0) == [1, 2, 3]
    assert chosen(overlap=1.0) == [1, 0, 2]
    assert chosen(min_boxes=3) == [1, 2, 3]
    assert chosen(min_boxes=4) == [1, 0, 2, 3]  # the limit rises until there are as many
    assert chosen(min_boxes=9) == [1, 0, 2, 3]  # there are no more
    assert chosen(max_boxes=1) == [1]
    assert chosen(whole_image=True) == [WHOLE, 1, 2]
    assert chosen([[120.0, 10, 130, 20], [5, 5, 5, 9]], [0.9, 0.8]) == [WHOLE]
    assert chosen([[10.0, 10, 50, 50], [60, 20, 90, 40]], [0.5, 0.5]) == [
        0,
        1,
    ]  # the earlier of equal ones first


def test_boxes_are_inside_the_photograph_and_the_whole_has_no_class() -> None:
    found = Found(
        torch.tensor(BOXES[3:4], dtype=torch.float32), torch.tensor([0.7]), torch.tensor([3])
    )
    selected = select(found, SIZE, DetectorOptions(weights="x", whole_image=True))
    assert selected.boxes.tolist() == [[0, 0, 100, 60], [0, 0, 30, 30]]
    assert selected.labels.tolist() == [WHOLE, 3]
    torch.testing.assert_close(selected.scores, torch.tensor([1.0, 0.7]))


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="that are not numbers"):
        chosen(scores=[0.5, float("nan"), 0.3, 0.1, 0.8])


@pytest.mark.specification
def test_logits_to_scores() -> None:
    logits = torch.tensor([[0.0, 2, 1], [20, 25, -3]])
    boxes = torch.tensor([[0.5, 0.5, 0.2, 0.4], [0.1, 0.1, 0.2, 0.2]])
    closed = Found.of_logits(logits, boxes, SIZE, none_last=True)
    torch.testing.assert_close(closed.scores, logits.softmax(1)[:, :2].amax(1))
    torch.testing.assert_close(closed.boxes, torch.tensor([[40.0, 18, 60, 42], [0, 0, 20, 12]]))
    each = Found.of_logits(logits, boxes, SIZE, none_last=False)
    assert each.labels.tolist() == [1, 1]  # both sigmoids of the second are 1
    torch.testing.assert_close(each.scores, logits.sigmoid().amax(1))


@pytest.mark.parametrize(
    ("given", "cells", "stride"),
    [
        ((106, 64), (4, 2), 32),
        ((100, 75), (4, 3), 32),
        ((840, 840), (60, 60), 14),
        ((64, 64), (16, 16), 4),
    ],
)
def test_a_maps_stride(given: tuple[int, int], cells: tuple[int, int], stride: int) -> None:
    shown = FeatureMap.of_input(torch.zeros(1, cells[1], cells[0]), given, given)
    assert shown.stride == stride
    # A last cell may lie partly beyond the photograph, and moves no box.
    assert shown.scale == pytest.approx((1 / stride, 1 / stride))


def test_a_padded_photographs_boxes_are_on_its_part_of_the_map() -> None:
    """A photograph of 40 x 60 pixels, twice as large in an input of 128 x 96 that is padded."""
    columns = torch.arange(16.0).repeat(12, 1)[None]  # of 8 pixels each
    found = Found.of_classes(
        torch.tensor([[0.1, 0.9], [0.8, 0.2]]),
        torch.tensor([[16.0, 8, 48, 24], [0, 0, 80, 120]]),
        (40, 60),
        (120, 80),
        torch.Size([1, 3, 96, 128]),
        None,
        [columns[None]],
    )
    assert found.boxes.tolist() == [[8, 4, 24, 12], [0, 0, 40, 60]]
    assert found.labels.tolist() == [1, 0]
    (shown,) = found.maps
    assert shown.stride == 8
    # Columns 2 to 5 are inside the first box.
    torch.testing.assert_close(shown.pooled(found.boxes[:1]), torch.tensor([[3.5]]))


@pytest.mark.parametrize(
    ("strides", "wanted", "nearest"),
    [((4, 8), 8, 8), ((8, 4), 8, 8), ((8, 16, 64), 32, 16), ((4, 16), 5, 4)],
)
def test_regions_are_of_the_map_whose_stride_is_nearest(
    strides: tuple[int, ...], wanted: int, nearest: int
) -> None:
    maps = [FeatureMap(torch.full((1, 4, 4), float(each)), each, (1, 1)) for each in strides]
    found = Found(torch.tensor([[0.0, 0, 4, 4]]), torch.ones(1), torch.zeros(1), maps=maps)
    options = DetectorOptions(weights="x", stride=wanted)
    engine: Any = SimpleNamespace(options=options)
    items = Detector._items(engine, found, select(found, SIZE, options))
    assert items.features.tolist() == [[nearest]]


@pytest.mark.specification
def test_what_is_inside_a_box_is_pooled() -> None:
    columns = torch.arange(8.0).repeat(4, 1)[
        None
    ]  # of 16 pixels each; the input is the photograph halved
    pooled = FeatureMap.of_input(columns, (128, 64), (256, 128)).pooled(
        torch.tensor([[64.0, 0, 128, 128]])
    )
    torch.testing.assert_close(pooled, torch.tensor([[2.5]]))


def test_a_graph_without_a_processor_reads_pixels_normalised_as_for_imagenet() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)
    graph: Any = SimpleNamespace(processor=None, side=[4, 6])
    found = Graph.prepare(graph, Image.fromarray(pixels))
    mean, deviation = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    expected = normalize(to_tensor(pixels), mean, deviation)
    torch.testing.assert_close(found["pixel_values"], expected)


def test_features_of_other_boxes_have_another_name() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"min_boxes": 10},
        {"max_boxes": 50},
        {"confidence": 0.3},
        {"overlap": 0.3},
        {"stride": 8},
        {"whole_image": True},
        {"items": "queries"},
        {"network": "ssd300_vgg16"},
        {"map_network": "vit_base"},
        {"map_network": "vit_base", "map_size": 224},
        {"prompts": ["dog"]},
        {"prompts": ["cat"]},
    ]
    names = [DetectorOptions(weights="x", **change).reported_as for change in changes]
    assert len({*names}) == len(changes), names

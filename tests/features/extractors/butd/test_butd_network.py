"""The network: names and shapes of its published weights, and each step against values worked out
by hand.
"""

from __future__ import annotations

import math
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.extractors import base
from pipeline.make.features.extractors.butd import checkpoint
from pipeline.make.features.extractors.butd.network import FasterRCNN, Predictor, RegionHead, Stem

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def network() -> FasterRCNN:
    return checkpoint.load("untrained")


def published_names() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every array of the port's weights with attributes: detectron2's names for a C4 Faster R-CNN,
    ResNet-101.
    """
    yield from convolution("backbone.stem.conv1", 64, 3, 7)
    for stage, blocks, channels in (
        ("backbone.res2", 3, 256),
        ("backbone.res3", 4, 512),
        ("backbone.res4", 23, 1024),
        ("roi_heads.res5", 3, 2048),
    ):
        before = 64 if channels == 256 else channels // 2
        for block in range(blocks):
            name, inner = f"{stage}.{block}", channels // 4
            if block == 0:
                yield from convolution(f"{name}.shortcut", channels, before, 1)
            yield from convolution(f"{name}.conv1", inner, before if block == 0 else channels, 1)
            yield from convolution(f"{name}.conv2", inner, inner, 3)
            yield from convolution(f"{name}.conv3", channels, inner, 1)
    for name, shape in (
        ("conv", (512, 1024, 3, 3)),
        ("objectness_logits", (12, 512, 1, 1)),
        ("anchor_deltas", (48, 512, 1, 1)),
    ):
        yield f"proposal_generator.rpn_head.{name}.weight", shape
        yield f"proposal_generator.rpn_head.{name}.bias", shape[:1]
    yield "roi_heads.box_predictor.cls_embedding.weight", (1601, 256)
    for name, shape in (
        ("cls_score", (1601, 2048)),
        ("bbox_pred", (6400, 2048)),
        ("fc_attr", (512, 2304)),
        ("attr_score", (401, 512)),
    ):
        yield f"roi_heads.box_predictor.{name}.weight", shape
        yield f"roi_heads.box_predictor.{name}.bias", shape[:1]


def convolution(name: str, out: int, into: int, size: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (out, into, size, size)
    for part in ("weight", "bias", "running_mean", "running_var"):
        yield f"{name}.norm.{part}", (out,)


def test_weights_under_the_published_names_fill_the_whole_network() -> None:
    with torch.device("meta"):
        network = FasterRCNN()
    shapes = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    assert shapes == dict(published_names())
    network.to_empty(device="cpu")
    published = {
        name: torch.tensor(float(place)).expand(shape)
        for place, (name, shape) in enumerate(published_names())
    }
    also_there = {
        "pixel_mean": torch.zeros(3, 1, 1),
        "pixel_std": torch.ones(3, 1, 1),
        "proposal_generator.anchor_generator.cell_anchors.0": torch.zeros(12, 4),
    }
    base.fill(network, published | also_there, "weights.pkl", checkpoint.TITLE)
    filled = network.state_dict()
    for place, name in enumerate(published):
        least, most = filled[name].aminmax()
        assert (least, most) == (place, place), name


def test_weights_without_attributes_or_of_another_shape_are_refused(network: FasterRCNN) -> None:
    state = dict(network.state_dict())
    without = {name: value for name, value in state.items() if "attr" not in name}
    with pytest.raises(
        InputError, match=r"4 of \d+ arrays .*fc_attr\.weight: expected \(512, 2304\), got nothing"
    ):
        base.fill(network, without, "faster_rcnn_from_caffe.pkl", checkpoint.TITLE)
    name = "proposal_generator.rpn_head.objectness_logits.bias"
    with pytest.raises(InputError, match=r"objectness_logits\.bias: expected \(12,\), got \(24,\)"):
        base.fill(network, {**state, name: torch.zeros(24)}, "caffe.pth", checkpoint.TITLE)


def test_weights_in_caffes_order_are_reordered() -> None:
    # Channels are numbered; of 12 anchors, Caffe's number r * 4 + s is detectron2's s * 3 + r.
    rpn, head = "proposal_generator.rpn_head", "roi_heads.box_predictor"
    objectness = torch.cat([torch.zeros(12), torch.arange(12.0)])
    state = {
        f"{head}.{name}.{part}": torch.arange(float(rows)).view(-1, *[1] * (part == "weight"))
        for name, rows in (
            ("cls_score", 1601),
            ("bbox_pred", 6404),
            ("attr_linear1", 512),
            ("attr_linear2", 401),
        )
        for part in ("weight", "bias")
    }
    for part in ("weight", "bias"):
        state[f"{rpn}.objectness_logits.{part}"] = objectness + 100 * torch.tensor(
            [1.0] * 12 + [0.0] * 12
        )
        state[f"{rpn}.anchor_deltas.{part}"] = torch.arange(48.0)
    state[f"{head}.cls_embed.weight"] = torch.arange(1601.0)[:, None]
    assert checkpoint.is_caffe(state)
    ours = checkpoint.to_detectron2(state, (10.0, 10.0, 5.0, 5.0))
    assert not checkpoint.is_caffe(ours)
    ratio_by_ratio = torch.arange(12.0).view(3, 4).T.flatten()
    assert ratio_by_ratio.tolist() == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]
    for part in ("weight", "bias"):
        assert ours[f"{head}.cls_score.{part}"].flatten().tolist() == [
            *range(1, 1601),
            0,
        ]  # "none" is the last
        assert ours[f"{head}.attr_score.{part}"].flatten().tolist() == [*range(1, 401), 0]
        assert ours[f"{head}.fc_attr.{part}"].flatten().tolist() == [*range(512)]
        assert ours[f"{head}.bbox_pred.{part}"].flatten()[:8].tolist() == [
            40,
            50,
            30,
            35,
            80,
            90,
            50,
            55,
        ]
        assert len(ours[f"{head}.bbox_pred.{part}"]) == 6400
        assert torch.equal(
            ours[f"{rpn}.objectness_logits.{part}"], ratio_by_ratio - 100
        )  # something less nothing
        assert torch.equal(
            ours[f"{rpn}.anchor_deltas.{part}"].view(12, 4)[:, 2], ratio_by_ratio * 4 + 2
        )
    assert ours[f"{head}.cls_embedding.weight"].flatten().tolist() == [*range(1, 1601), 0]


def test_caffes_order_has_the_published_shapes_too() -> None:
    theirs = {"bbox_pred": 6404, "objectness_logits": 24}
    shapes = {
        name: (theirs.get(name.split(".")[-2], shape[0]), *shape[1:])
        for name, shape in published_names()
    }
    renamed = {
        name.replace("cls_embedding", "cls_embed")
        .replace("fc_attr", "attr_linear1")
        .replace("attr_score", "attr_linear2"): torch.zeros(()).expand(shape)
        for name, shape in shapes.items()
    }
    ours = checkpoint.to_detectron2(renamed, (10.0, 10.0, 5.0, 5.0))
    assert {name: tuple(value.shape) for name, value in ours.items()} == dict(published_names())


def test_pickled_and_torch_files_are_read(tmp_path: Path) -> None:
    arrays = {
        "a.weight": np.arange(4, dtype=np.float32).reshape(2, 2),
        "a.bias": np.zeros(2, np.float32),
    }
    (tmp_path / "port.pkl").write_bytes(
        pickle.dumps({"model": arrays, "__author__": "VG"}, protocol=2)
    )
    (tmp_path / "bare.pkl").write_bytes(pickle.dumps(arrays))
    torch.save(
        {"model": {name: torch.from_numpy(array) for name, array in arrays.items()}},
        tmp_path / "d2.pth",
    )
    for file in ("port.pkl", "bare.pkl", "d2.pth"):
        read = checkpoint.read_state(tmp_path / file)
        assert {name: value.tolist() for name, value in read.items()} == {
            name: array.tolist() for name, array in arrays.items()
        }


@pytest.mark.parametrize("value", [[1, 2], {"model": {"a": "text"}}, {"model": 3}])
def test_a_pickle_of_something_else_is_refused(tmp_path: Path, value: object) -> None:
    (tmp_path / "other.pkl").write_bytes(pickle.dumps(value))
    with pytest.raises(InputError, match="expected a dict of arrays"):
        checkpoint.read_state(tmp_path / "other.pkl")


def test_untrained_weights_are_the_same_each_time_and_leave_the_random_state(
    network: FasterRCNN,
) -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    again = checkpoint.load("untrained").state_dict()
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(value, again[name]) for name, value in network.state_dict().items())


def test_without_detectron2_one_line_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "detectron2", None)
    for name in [name for name in sys.modules if name.startswith("detectron2.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "pipeline.make.features.extractors.butd.network")
    with pytest.raises(
        InputError,
        match=r"--no-build-isolation 'git\+https://github\.com/facebookresearch/detectron2",
    ):
        checkpoint.load("untrained")


def test_pooling_after_the_first_layer_has_no_padding_and_rounds_up() -> None:
    stem = Stem(norm="FrozenBN")
    nn.init.zeros_(stem.conv1.weight)
    stem.conv1.weight.data[0, 0, 3, 3] = 1.0  # takes every second pixel of the first channel
    pixels = torch.zeros(1, 3, 16, 16)
    pixels[0, 0] = torch.arange(16.0)
    # Columns 0 2 4 6 8 10 12 14 in windows of three, every two: 0-4, 4-8, 8-12, and what is left of
    # 12-16.
    with torch.no_grad():
        torch.testing.assert_close(stem(pixels)[0, 0], torch.tensor([4.0, 8, 12, 14]).expand(4, 4))


# 97: 49 after the first layer, 24 after its pooling, 12 and 6 after res3 and res4; 100: 50, 25, 13
# and 7.
@pytest.mark.parametrize(
    ("height", "width", "rows", "columns"), [(96, 128, 6, 8), (97, 60, 6, 4), (600, 100, 38, 7)]
)
def test_the_map_has_a_cell_for_every_16_pixels(
    network: FasterRCNN, height: int, width: int, rows: int, columns: int
) -> None:
    with torch.inference_mode():
        feature_map = network.feature_maps(torch.zeros(1, 3, height, width))[0]
        objectness, deltas = network.proposal_generator(feature_map)
    assert feature_map.shape == (1024, rows, columns)
    assert (objectness.shape, deltas.shape) == ((12, rows, columns), (48, rows, columns))


def test_strides_are_in_the_1x1_convolutions_and_res5_is_dilated(network: FasterRCNN) -> None:
    first = network.backbone.res4[0]
    assert (first.conv1.stride, first.conv2.stride, first.shortcut.stride) == (
        (2, 2),
        (1, 1),
        (2, 2),
    )
    for block in network.roi_heads.res5:
        assert (block.conv1.stride, block.conv2.dilation, block.conv2.padding) == (
            (1, 1),
            (2, 2),
            (2, 2),
        )


def passing_head() -> RegionHead:
    """A head whose res5 hands its 1,024 channels through and adds 1,024 zeros."""
    head = RegionHead()
    for block in head.res5:
        block.conv3.norm.weight.zero_()
    nn.init.zeros_(head.res5[0].shortcut.weight)
    head.res5[0].shortcut.weight.data[:1024, :, 0, 0] = torch.eye(1024)
    return head.eval()


@torch.inference_mode()
def test_a_region_is_14_by_14_maxima_then_their_mean() -> None:
    feature_map = torch.zeros(1024, 30, 30)
    feature_map[0] = torch.arange(30.0)  # the column
    feature_map[1] = torch.arange(30.0)[:, None]  # the row
    feature_map[2] = 5.0
    # Ends are rounded to cells and belong to the box: 0 to 432 px are cells 0 to 27, two to each of
    # the 14, of which the larger are 1, 3, ... 27. From 64 to 272 px, cells 4 to 17, one to each.
    # Cells 10.4 to 10.6 are 10 and 11, seven times each, and 2.5 is cell 3.
    boxes = torch.tensor([[0.0, 0, 432, 432], [64, 0, 272, 432], [167, 40, 169, 40]])
    features = passing_head()(feature_map, boxes).features
    assert features.shape == (3, 2048)
    expected = torch.tensor([[14.0, 14, 5, 0], [10.5, 14, 5, 0], [10.5, 3, 5, 0]])
    torch.testing.assert_close(features[:, :4], expected)
    assert not features[:, 1024:].any()


@torch.inference_mode()
def test_more_boxes_than_fit_at_once_are_as_alone(network: FasterRCNN) -> None:
    generator = torch.Generator().manual_seed(0)
    feature_map = torch.rand(1024, 6, 8, generator=generator)
    near = torch.rand(3, 2, generator=generator) * 40
    boxes = torch.cat([near, near + 40], dim=1)
    together = network.roi_heads(feature_map, boxes)
    for place in range(3):
        alone = network.roi_heads(feature_map, boxes[place : place + 1])
        torch.testing.assert_close(alone.features[0], together.features[place])
        torch.testing.assert_close(alone.attributes[0], together.attributes[place])


def zero_predictor() -> Predictor:
    predictor = Predictor()
    for value in predictor.parameters():
        nn.init.zeros_(value)
    return predictor


@torch.inference_mode()
def test_attributes_follow_from_the_feature_and_the_likeliest_object() -> None:
    predictor = zero_predictor()
    predictor.cls_score.bias[:] = -30.0
    predictor.cls_score.weight[7, 0], predictor.cls_score.bias[7] = (
        1.0,
        0.0,
    )  # object 7 as likely as feature 0
    predictor.cls_score.bias[1600] = 0.0  # "none"
    predictor.cls_embedding.weight[7, 3], predictor.cls_embedding.weight[1600, 3] = 3.0, -9.0
    predictor.fc_attr.weight[0, 0], predictor.fc_attr.weight[0, 2048 + 3] = 0.5, 1.0
    predictor.attr_score.weight[11, 0] = 1.0
    features = torch.zeros(2, 2048)
    features[:, 0] = torch.tensor([2.0, -2.0])
    said = predictor(features)
    # Object 7 against none: e^2 / (e^2 + 1), then e^-2 / (e^-2 + 1), where none is the likeliest.
    torch.testing.assert_close(said.objects[:, 7], torch.tensor([2.0, -2.0]).sigmoid())
    assert said.objects.shape == (2, 1600)
    # Hidden: 0.5 * 2 + 3 = 4, and 0.5 * -2 - 9 below zero. Attribute 11 against 400 others, "none"
    # among them.
    torch.testing.assert_close(
        said.attributes[:, 11], torch.tensor([math.exp(4) / (math.exp(4) + 400), 1 / 401])
    )
    assert said.attributes.shape == (2, 400)


@torch.inference_mode()
def test_corrections_are_by_class_and_divided_by_their_weights() -> None:
    predictor = zero_predictor()
    predictor.bbox_pred.bias[4 * 7 : 4 * 8] = torch.tensor([1.0, 2.0, 3.0, 4.0])
    deltas = predictor(torch.zeros(1, 2048)).deltas
    assert deltas.shape == (1, 1600, 4)
    torch.testing.assert_close(deltas[0, 7], torch.tensor([0.1, 0.2, 0.6, 0.8]))
    assert not deltas[0, [6, 8]].any()

"""Grid features of detectors: detectron2's network and resizing as oracle, its names of weights,
sizes and refusals.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from detectron2.data.transforms import ResizeShortestEdge
from detectron2.modeling.backbone.resnet import BasicStem, BottleneckBlock, ResNet
from PIL import Image

from pipeline.foundation.parts.errors import InputError
from pipeline.make.features import extractors
from pipeline.make.features.extractors import Runtime, grid_feats
from pipeline.make.features.extractors.grid_feats import BACKBONES


class Malice:
    """Unpickled, it would touch a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.mark,))


BLOCKS = {"grid-feats-x101": [3, 4, 23, 3], "grid-feats-x152": [3, 8, 36, 3]}
SHIPPED = dict(BACKBONES)
DEVIATIONS = {"grid-feats-x101": [57.375, 57.12, 58.395], "grid-feats-x152": [1.0, 1.0, 1.0]}


def released(blocks: list[int]) -> ResNet:
    """detectron2's backbone as grid-feats-vqa's files of settings describe it for extraction."""
    stages = [
        ResNet.make_stage(
            BottleneckBlock,
            count,
            stride_per_block=[1 if place == 0 else 2] + [1] * (count - 1),
            in_channels=64 if place == 0 else 128 << place,
            out_channels=256 << place,
            bottleneck_channels=256 << place,
            num_groups=32,
            stride_in_1x1=False,
            dilation=1,
            norm="FrozenBN",
        )
        for place, count in enumerate(blocks)
    ]
    return ResNet(BasicStem(norm="FrozenBN"), stages, out_features=["res5"])


@pytest.fixture(scope="module")
def shallow() -> Iterator[list[int]]:
    """The blocks of each stage of an X-101 that computes the same with fewer, from here on."""
    blocks = [1, 1, 2, 1]
    with pytest.MonkeyPatch.context() as patch:
        x101 = (tuple(blocks), tuple(DEVIATIONS["grid-feats-x101"]))
        patch.setitem(BACKBONES, "resnext101_32x8d", x101)
        yield blocks


@pytest.fixture(scope="module")
def published(shallow: list[int], tmp_path_factory: pytest.TempPathFactory) -> tuple[ResNet, Path]:
    """A shallow X-101 with random weights, and its file as grid-feats-vqa publishes it, with the
    rest of a detector.
    """
    network = released(shallow).eval()
    generator = torch.Generator().manual_seed(0)
    for name, value in network.state_dict().items():
        if name.endswith(("running_mean", "norm.bias")):
            value.normal_(std=0.1, generator=generator)
        elif name.endswith("running_var"):
            value.uniform_(0.5, 1.5, generator=generator)
        elif name.endswith("conv3.norm.weight"):
            value.uniform_(0.1, 0.3, generator=generator)
    state = {f"backbone.{name}": value for name, value in network.state_dict().items()}
    more = {
        "proposal_generator.rpn_head.conv.weight": torch.zeros(2),
        "roi_heads.attribute_predictor.fc.0.bias": torch.zeros(2),
    }
    file = tmp_path_factory.mktemp("weights") / "X-101.pth"
    torch.save({"model": state | more, "iteration": 89999}, file)
    return network, file


@pytest.fixture(scope="module")
def engine(published: tuple[ResNet, Path]) -> Any:
    options = {"weights": str(published[1]), "short_side": 96, "long_side": 160}
    return extractors.build("grid-feats-x101", options, Runtime())


def pictures() -> list[Image.Image]:
    noise = np.random.default_rng(0)
    sizes = [(80, 60), (50, 90), (200, 60), (80, 60), (80, 60)]
    return [Image.fromarray(noise.integers(0, 255, (h, w, 3), np.uint8)) for w, h in sizes]


def expected(network: ResNet, picture: Image.Image) -> np.ndarray:
    """[n, 2048], from detectron2's reading, resizing and network."""
    pixels = np.asarray(picture)[:, :, ::-1]
    resized = ResizeShortestEdge(96, 160).get_transform(pixels).apply_image(pixels)
    planes = torch.as_tensor(np.ascontiguousarray(resized.transpose(2, 0, 1))).float()
    mean = torch.tensor([103.53, 116.28, 123.675]).view(3, 1, 1)
    with torch.inference_mode():
        last = network(
            ((planes - mean) / torch.tensor(DEVIATIONS["grid-feats-x101"]).view(3, 1, 1))[None]
        )["res5"]
    found: np.ndarray = last[0].flatten(1).T.numpy()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 2])
def test_features_are_those_of_detectron2s_network(
    published: tuple[ResNet, Path], engine: Any, at_once: int
) -> None:
    assert (engine.trained, engine.items, engine.dimension, engine.reported_as) == (
        True,
        15,
        2048,
        "grid-feats-x101-96px-160px",
    )
    engine.at_once = at_once
    items = engine.extract(
        [engine.prepare(picture) for picture in pictures()], [each.size for each in pictures()]
    )
    assert [len(each.features) for each in items] == [
        12,
        15,
        10,
        12,
        12,
    ]  # 3 x 4, 5 x 3 and 2 x 5 cells
    for each, picture in zip(items, pictures(), strict=True):
        there = expected(published[0], picture)
        np.testing.assert_allclose(each.features, there, rtol=0, atol=1e-5 * np.abs(there).max())
        assert each.extras["boxes"][0].tolist()[:2] == [0, 0]
        assert each.extras["boxes"][-1].tolist()[2:] == list(picture.size)


@pytest.mark.slow
def test_openvino_gives_torchs_features(published: tuple[ResNet, Path], engine: Any) -> None:
    options = {"weights": str(published[1]), "short_side": 96, "long_side": 160}
    ours = extractors.build("grid-feats-x101", options, Runtime(backend="openvino"))
    for picture in pictures()[:2]:
        there, got = (
            each.extract([each.prepare(picture)], [picture.size])[0].features
            for each in (engine, ours)
        )
        np.testing.assert_allclose(got, there, rtol=0, atol=1e-4 * np.abs(there).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOCKS)
def test_every_array_has_its_place_under_the_released_codes_names(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid_feats, "BACKBONES", SHIPPED)
    network = {101: "resnext101_32x8d", 152: "resnext152_32x8d"}[int(name[-3:])]
    assert tuple(map(list, SHIPPED[network])) == (BLOCKS[name], DEVIATIONS[name])
    with torch.device("meta"):
        theirs = released(BLOCKS[name]).state_dict()
        ours = grid_feats.load(network, "untrained").state_dict()
    renamed = {
        grid_feats._renamed(f"backbone.{each}"): value.shape for each, value in theirs.items()
    }
    assert renamed == {
        each: value.shape
        for each, value in ours.items()
        if not each.endswith("num_batches_tracked")
    }


@pytest.mark.specification
def test_images_get_the_size_that_detectron2_gives_them() -> None:
    """Of common photographs, and of sides whose scaled lengths lie anywhere between two pixels."""
    sizes = [(640, 480), (427, 640), (600, 600), (301, 299), (1000, 300), (17, 1000), (3, 2)]
    sizes += product(range(401, 700, 13), range(402, 1900, 67))
    sizes += [(height, width) for width, height in sizes]
    for width, height in sizes:
        rows, columns = ResizeShortestEdge.get_output_shape(height, width, 600, 1000)
        assert grid_feats.resized(width, height, 600, 1000) == (columns, rows), (width, height)


@pytest.mark.slow
def test_engines_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {name: extractors.ENGINES.options(name, {}) for name in BLOCKS}
    assert {name: (each.network, each.weights) for name, each in options.items()} == {  # type: ignore[attr-defined]
        "grid-feats-x101": ("resnext101_32x8d", "grid-feats-x101"),
        "grid-feats-x152": ("resnext152_32x8d", "grid-feats-x152"),
    }
    monkeypatch.setattr(grid_feats, "ResNet", None)  # no network is made before the file is there
    with pytest.raises(
        InputError, match=r"grid-feats-vqa, X-152.*https://dl\.fbaipublicfiles\.com"
    ):
        extractors.build("grid-feats-x152", {}, Runtime())


@pytest.mark.slow
def test_a_thread_of_an_image_has_a_row_of_items(engine: Any) -> None:
    picture = Image.new("RGB", (2000, 2))
    (items,) = engine.extract([engine.prepare(picture)], [picture.size])
    assert items.features.shape == (5, 2048)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("there", "description"), [({}, "nothing"), ({"stem.conv1.weight": torch.zeros(2)}, r"\(2,\)")]
)
@pytest.mark.usefixtures("shallow")
def test_weights_of_another_network_are_refused(
    there: dict[str, torch.Tensor], description: str, tmp_path: Path
) -> None:
    torch.save({"model": there}, tmp_path / "X-101.pth")
    with pytest.raises(
        InputError,
        match=r"X-101\.pth: \d+ of \d+ arrays do not fit this ResNeXt; conv1\.weight: "
        rf"expected \(64, 3, 7, 7\), got {description}",
    ):
        grid_feats.load("resnext101_32x8d", str(tmp_path / "X-101.pth"))


@pytest.mark.slow
def test_pickled_code_in_weights_is_never_run(tmp_path: Path) -> None:
    torch.save(
        {"model": {"backbone.stem.conv1.weight": Malice(tmp_path / "owned")}},
        tmp_path / "X-101.pth",
    )
    with pytest.raises(InputError, match=r"names __builtin__\.getattr, .* do not trust it"):
        grid_feats.load("resnext101_32x8d", str(tmp_path / "X-101.pth"))
    assert not (tmp_path / "owned").exists()

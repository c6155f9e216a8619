"""The ResNet of BUTD grids: the public file's names, Caffe's layers (detectron2's as oracle),
OpenCV's resize.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision.models.resnet import Bottleneck, ResNet

from pipeline.foundation.files import weights
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features import extractors
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.extractors.butd import pixels
from pipeline.make.features.extractors.network import caffe_resnet101

pytestmark = pytest.mark.slow

RESNET = "pipeline.make.features.extractors.network.resnet101"


def square(image: Image.Image, size: int) -> torch.Tensor:
    return pixels.resized(image, size / image.width, size / image.height)


@pytest.fixture(scope="module")
def network() -> nn.Module:
    """Of fewer blocks; random weights, and random statistics in each norm that keep the values in
    range.
    """
    generator = torch.Generator().manual_seed(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RESNET, lambda: ResNet(Bottleneck, [1, 1, 2, 1]))
        made = caffe_resnet101().eval().requires_grad_(False)
    for name, value in made.state_dict().items():
        if name.endswith("running_mean") or re.search(r"(bn\d|downsample\.1)\.bias$", name):
            value.normal_(std=0.1, generator=generator)
        elif name.endswith("running_var"):
            value.uniform_(0.5, 1.5, generator=generator)
        elif name.endswith("bn3.weight"):
            value.fill_(0.1)
    return made


@pytest.fixture
def shallow(monkeypatch: pytest.MonkeyPatch) -> nn.Module:
    """A network of fewer blocks; engines get it instead of the ResNet-101."""
    monkeypatch.setattr(RESNET, lambda: ResNet(Bottleneck, [1, 1, 2, 1]))
    return caffe_resnet101()


def as_published(network: nn.Module) -> dict[str, dict[str, torch.Tensor]]:
    """The state dict as in original_updown_backbone.pth: everything but layer4 numbered under
    "base".
    """
    numbers = {"conv1": "0", "bn1": "1", "layer1": "4", "layer2": "5", "layer3": "6"}
    tree: dict[str, dict[str, torch.Tensor]] = {"base": {}, "top": {}}
    for name, value in network.state_dict().items():
        first, rest = name.split(".", 1)
        if not name.endswith("num_batches_tracked"):  # the file is older than that
            tree["top" if first == "layer4" else "base"][f"{numbers.get(first, '0')}.{rest}"] = (
                value
            )
    return tree


def test_the_public_files_names_are_those_of_a_resnet_101() -> None:
    with torch.device("meta"):
        tree = as_published(caffe_resnet101())
    assert {"0.weight", "1.running_var", "4.0.downsample.1.weight"} <= set(tree["base"])
    assert {"0.0.conv1.weight", "0.2.bn3.running_mean"} <= set(tree["top"])
    blocks = {name.rpartition(".conv3")[0] for name in tree["base"] if "conv3" in name}
    for stage, count in (("4", 3), ("5", 4), ("6", 23)):
        assert {f"{stage}.{block}" for block in range(count)} <= blocks
    assert len(blocks) == 3 + 4 + 23


@pytest.mark.usefixtures("shallow")
def test_the_public_files_names_load(network: nn.Module, tmp_path: Path) -> None:
    torch.save(as_published(network), tmp_path / "backbone.pth")
    options = {
        "network": "butd_resnet101",
        "weights": str(tmp_path / "backbone.pth"),
        "image_size": 64,
        "grid": 2,
    }
    engine = extractors.build("grid", options, Runtime())
    assert (engine.trained, engine.items, engine.dimension) == (True, 4, 2048)
    assert engine.reported_as == "grid2-butd_resnet101-64px"
    assert engine.weights == weights.digest(network)
    picture = Image.fromarray(
        np.random.default_rng(0).integers(0, 255, (50, 70, 3), dtype=np.uint8)
    )
    items = engine.extract([engine.prepare(picture)], [picture.size])[0].features
    expected = network(square(picture, 64)[None])[0].flatten(1).T
    np.testing.assert_allclose(items, expected, atol=1e-3 * float(expected.abs().max()))


def test_layers_are_caffes(network: nn.Module) -> None:
    """detectron2's ResNet with strides in the 1 x 1 convolutions computes the same."""
    from detectron2.modeling.backbone.resnet import ResNet

    from pipeline.make.features.extractors.butd.network import Stem, stage

    sizes = [(1, 1, 64, 256), (1, 2, 256, 512), (2, 2, 512, 1024), (1, 2, 1024, 2048)]
    oracle = ResNet(Stem(norm="FrozenBN"), [stage(*size) for size in sizes], out_features=["res5"])
    state = {}
    for name, value in network.state_dict().items():
        name = re.sub(r"^(conv1|bn1)", r"stem.\1", name)
        name = re.sub(r"^layer(\d)", lambda found: f"res{int(found[1]) + 1}", name)
        name = re.sub(r"bn(\d)", r"conv\1.norm", name)
        state[name.replace("downsample.0", "shortcut").replace("downsample.1", "shortcut.norm")] = (
            value
        )
    oracle.load_state_dict(state, strict=False)
    images = torch.randn(1, 3, 96, 128, generator=torch.Generator().manual_seed(1)) * 60
    with torch.inference_mode():
        expected, ours = oracle.eval()(images)["res5"], network(images)
    assert ours.shape == (1, 2048, 3, 4)
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.usefixtures("shallow")
def test_openvino_gives_torchs_cells() -> None:
    options = {"network": "butd_resnet101", "weights": "untrained", "image_size": 64, "grid": 2}
    picture = Image.fromarray(
        np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)
    )
    engines = [
        extractors.build("grid", options, Runtime(backend=backend))
        for backend in ("torch", "openvino")
    ]
    expected, got = (
        engine.extract([engine.prepare(picture)], [picture.size])[0].features for engine in engines
    )
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_pixels_are_blue_first_less_the_means_and_resized_without_smoothing() -> None:
    picture = Image.fromarray(
        np.array([[[10, 20, 30], [50, 60, 70]]], dtype=np.uint8)
    )  # 2 wide, 1 high
    planes = square(picture, 4)
    assert planes.shape == (3, 4, 4)
    # Centres of 4 pixels over 2: at -0.25, 0.25, 0.75, 1.25 of the source; beyond its ends it goes
    # on level.
    np.testing.assert_allclose(planes[0, 0], np.array([30, 40, 60, 70]) - 102.9801, rtol=1e-5)
    np.testing.assert_allclose(planes[2, 3], np.array([10, 20, 40, 50]) - 122.7717, rtol=1e-5)
    shrunk = square(Image.fromarray(np.arange(0, 240, 10, dtype=np.uint8).reshape(1, 8, 3)), 2)
    # At 1.5 and 5.5 of 8: halfway between two neighbours, whatever stands further off.
    np.testing.assert_allclose(shrunk[0, 0] + 102.9801, [65.0, 185.0], rtol=1e-5)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda tree: {"state_dict": {}}, "expected the parts 'base' and 'top'"),
        (
            lambda tree: {**tree, "top": {}},
            r"arrays do not fit a ResNet-101; layer4\.0\.conv1\.weight: .*got nothing",
        ),
        (
            lambda tree: {**tree, "base": {**tree["base"], "0.weight": torch.zeros(3)}},
            r"conv1\.weight: .*got \(3,\)",
        ),
    ],
)
def test_other_files_are_refused(
    shallow: nn.Module, tmp_path: Path, spoil: object, said: str
) -> None:
    torch.save(spoil(as_published(shallow)), tmp_path / "other.pth")  # type: ignore[operator]
    with pytest.raises(InputError, match=said):
        extractors.build(
            "grid", {"network": "butd_resnet101", "weights": str(tmp_path / "other.pth")}, Runtime()
        )


def test_missing_weights_say_where_they_come_from() -> None:
    with pytest.raises(InputError, match="vse_infty"):
        extractors.build(
            "grid", {"network": "butd_resnet101", "weights": "butd-resnet101"}, Runtime()
        )

"""A network of timm, or BUTD's ResNet-101, that runs over a square, with its weights and its own
preprocessing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
from PIL import Image
from timm.data import resolve_model_data_config
from torch import nn
from torchvision.models import resnet101

from pipeline.foundation.files import images, weights
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.extractors import backend, base
from pipeline.make.features.extractors.butd import pixels as butd_pixels
from pipeline.make.features.extractors.runtime import Runtime


class Network:
    """A timm model in evaluation mode, channels last."""

    def __init__(self, name: str, weights_name: str, runtime: Runtime, **options: Any) -> None:
        self.trained = weights_name != weights.UNTRAINED
        self.runtime = runtime
        self.model = self.build(name, weights_name, options)
        self.digest = weights.digest(self.model)
        self.model.to(runtime.device).to(memory_format=torch.channels_last)
        self._graph = None
        if runtime.backend != backend.TORCH:
            self._graph = backend.Graph(self.model, self.forward)

    def build(self, name: str, weights_name: str, options: dict[str, Any]) -> nn.Module:
        """Create the model with its weights, and read how its pixels are scaled."""
        model = _create(name, weights_name, options)
        config = resolve_model_data_config(model)
        self._mean = torch.tensor(config["mean"]).mul(255).view(1, 3, 1, 1)
        self._std = torch.tensor(config["std"]).mul(255).view(1, 3, 1, 1)
        return model

    def prepare(self, image: Image.Image, size: int) -> torch.Tensor:
        """Resize to a square, ignoring the aspect ratio and without cropping: uint8 [size, size,
        3].
        """
        return torch.from_numpy(np.array(images.resize(image, size, size)))

    @torch.inference_mode()
    def features(self, batch: list[torch.Tensor]) -> torch.Tensor:
        """Compute the network's last map or tokens, before its head: float32 [B, ...]."""
        pixels = torch.stack(batch)
        if self._graph is None:
            return self._run(pixels)
        return self._graph(pixels)

    @torch.inference_mode()
    def probe(self, size: int) -> torch.Tensor:
        """Compute the features of one black image with torch, for their shape."""
        black = self.prepare(Image.new("RGB", (1, 1)), size)
        return self._run(black[None])

    @property
    def prefix(self) -> int:
        """How many tokens a vision transformer has before its patches."""
        return int(getattr(self.model, "num_prefix_tokens", 0))

    def channels_first(self, output: torch.Tensor) -> torch.Tensor:
        """Put the channels of a map first, which some timm networks keep last; another output stays
        as it is.
        """
        channels = getattr(self.model, "num_features", -1)
        if output.ndim == 4 and output.shape[-1] == channels != output.shape[1]:
            return output.permute(0, 3, 1, 2)
        return output

    def _run(self, pixels: torch.Tensor) -> torch.Tensor:
        with self.runtime.autocast():
            return self.forward(self.runtime.send(pixels)).float()

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute the last map or tokens [B, ...] in the surrounding autocast's precision, with
        gradients.
        """
        planes = pixels.permute(0, 3, 1, 2)  # already channels last
        normal = planes.float().sub_(self._mean.to(planes.device)).div_(self._std.to(planes.device))
        map_or_tokens: torch.Tensor = self.model.forward_features(normal)  # type: ignore[operator]
        return map_or_tokens


def _create(name: str, weights_name: str, options: dict[str, Any]) -> nn.Module:
    known = weights.checkpoints().get(weights_name)
    if ":" in name:
        raise InputError(
            f"network {name!r}: expected a name of timm, not an address; `timm.list_models()` names them"
        )
    if known is not None and known.timm not in (None, name):
        raise InputError(
            f"weights {weights_name!r} are of {known.timm}, the network is {name!r}; use the same name"
        )
    pretrained: Mapping[str, Any] = {}
    if known is not None and known.timm:
        pretrained = weights.from_timm(weights_name, known)

    def make() -> nn.Module:
        try:
            return timm.create_model(name, **pretrained, **options)
        except (RuntimeError, TypeError, AssertionError) as error:
            raise InputError(
                f"network {name!r}: {error}; `timm.list_models()` names them"
            ) from None
        except OSError:
            assert known is not None  # nothing else is downloaded
            raise weights.missing(weights_name, known) from None

    to_fill = weights.UNTRAINED if pretrained else weights_name
    optional = r"classifier|fc\.|head\."
    return base.with_weights(make, to_fill, weights.read, "the network", optional)


# Part of the file -> number of a layer in it -> our name.
BUTD_PARTS = {
    "base": {"0": "conv1", "1": "bn1", "4": "layer1", "5": "layer2", "6": "layer3"},
    "top": {"0": "layer4"},
}


class ButdCnn(Network):
    """The ResNet-101 of Bottom-Up-Attention, without its detector, for BUTD grid features (VSE∞
    section 4.1).
    """

    # A Caffe ResNet: strides in the 1 x 1 convolutions, pooling without padding over windows that
    # may reach beyond the map, and pixels in the order blue, green, red, 0 to 255, less the means.
    # It does not need detectron2. The weights are VSE∞'s conversion,
    # `original_updown_backbone.pth`: the layers before the last stage under "base", numbered, that
    # stage under "top".

    def build(self, name: str, weights_name: str, options: dict[str, Any]) -> nn.Module:
        """Create the model with its weights."""
        return base.with_weights(
            caffe_resnet101,
            weights_name,
            published,
            "a ResNet-101",
            optional=".*num_batches_tracked",
        )

    def prepare(self, image: Image.Image, size: int) -> torch.Tensor:
        """Resize to a square, bilinear and without antialiasing, as OpenCV does: float32 [size,
        size, 3].
        """
        across = size / image.width
        down = size / image.height
        return butd_pixels.resized(image, across, down).permute(1, 2, 0).contiguous()

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute the last map [B, 2048, S / 32, S / 32] in the surrounding autocast's precision,
        with gradients.
        """
        last: torch.Tensor = self.model(pixels.permute(0, 3, 1, 2))
        return last


def caffe_resnet101() -> nn.Sequential:
    """Build torchvision's ResNet-101 without its classifier, with Caffe's strides and first
    pooling.
    """
    whole = resnet101()
    whole.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=0, ceil_mode=True)
    for stage in (whole.layer2, whole.layer3, whole.layer4):
        stage[0].conv1.stride = (2, 2)
        stage[0].conv2.stride = (1, 1)
    return base.without_classifier(whole)


def published(path: Path) -> dict[str, torch.Tensor]:
    """Read `original_updown_backbone.pth`, with its arrays named as in the network."""
    tree = weights.read_tree(path)
    has_parts = isinstance(tree, Mapping) and all(
        isinstance(tree.get(part), Mapping) for part in BUTD_PARTS
    )
    if not has_parts:
        raise InputError(
            f"{path}: expected the parts 'base' and 'top' of original_updown_backbone.pth"
        )
    state = {}
    for part, names in BUTD_PARTS.items():
        for name, value in tree[part].items():
            layer, _, rest = str(name).partition(".")
            if layer not in names or rest.endswith("num_batches_tracked"):
                continue
            if isinstance(value, torch.Tensor):
                state[f"{names[layer]}.{rest}"] = value
    return state

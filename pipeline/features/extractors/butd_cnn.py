"""The ResNet-101 of Bottom-Up-Attention alone, for BUTD grid features (VSE∞ section 4.1).

A Caffe ResNet: strides in the 1 x 1 convolutions, pooling without padding over windows that may reach beyond the map,
and pixels in the order blue, green, red, 0 to 255, less the means. It does not need detectron2. The weights are VSE∞'s
conversion, `original_updown_backbone.pth`: the layers before the last stage under "base", numbered, that stage under
"top".
"""

from collections.abc import Mapping
from typing import Any

import torch
from PIL import Image
from torch import nn
from torchvision.models import resnet101

from pipeline.features.extractors import base
from pipeline.features.extractors.butd import pixels
from pipeline.features.extractors.network import Network
from pipeline.files import weights
from pipeline.parts.errors import InputError

# Places in the file, by its two parts -> our names.
NAMES = {"base": {"0": "conv1", "1": "bn1", "4": "layer1", "5": "layer2", "6": "layer3"}, "top": {"0": "layer4"}}


class ButdCnn(Network):
    """The network in evaluation mode, channels last."""

    def build(self, name: str, weights_name: str, options: dict[str, Any]) -> nn.Module:
        """Create the model with its weights."""
        with base.seeded():
            model = caffe_resnet101()
        if self.trained:
            path, _ = weights.locate(weights_name)
            state = renamed(weights.read_tree(path), str(path))
            base.fill(model, state, str(path), "a ResNet-101", optional=".*num_batches_tracked")
        return model

    def prepare(self, image: Image.Image, size: int) -> torch.Tensor:
        """Resize to a square, bilinear and without antialiasing, as OpenCV does: float32 [size, size, 3]."""
        return pixels.resized(image, size / image.width, size / image.height).permute(1, 2, 0).contiguous()

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute the last map [B, 2048, S / 32, S / 32] in the surrounding autocast's precision.

        Gradients reach the weights.
        """
        last: torch.Tensor = self.model(pixels.permute(0, 3, 1, 2))
        return last


def caffe_resnet101() -> nn.Sequential:
    """Build torchvision's ResNet-101 without its classifier, with Caffe's strides and first pooling."""
    whole = resnet101()
    whole.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=0, ceil_mode=True)
    for stage in (whole.layer2, whole.layer3, whole.layer4):
        stage[0].conv1.stride, stage[0].conv2.stride = (2, 2), (1, 1)
    return base.without_classifier(whole)


def renamed(tree: object, source: str) -> dict[str, torch.Tensor]:
    """Name the arrays of `original_updown_backbone.pth` as the network does."""
    if not isinstance(tree, Mapping) or not all(isinstance(tree.get(part), Mapping) for part in NAMES):
        raise InputError(f"{source}: expected the parts 'base' and 'top' of original_updown_backbone.pth")
    state = {}
    for part, names in NAMES.items():
        for name, value in tree[part].items():
            place, _, rest = str(name).partition(".")
            if place in names and not rest.endswith("num_batches_tracked") and isinstance(value, torch.Tensor):
                state[f"{names[place]}.{rest}"] = value
    return state

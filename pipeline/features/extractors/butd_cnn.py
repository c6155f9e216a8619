"""The ResNet-101 of Bottom-Up-Attention alone, for BUTD grid features (VSE∞ section 4.1).

A Caffe ResNet: strides in the 1 x 1 convolutions, pooling without padding over windows that may reach beyond the map,
and pixels in the order blue, green, red, 0 to 255, less the means. It does not need detectron2. The weights are VSE∞'s
conversion, `original_updown_backbone.pth`: the layers before the last stage under "base", numbered, that stage under
"top".
"""

from collections.abc import Mapping

import torch
from PIL import Image
from torch import nn
from torchvision.models import resnet101

from pipeline.features.extractors.butd import pixels
from pipeline.features.extractors.network import Network
from pipeline.features.extractors.runtime import Runtime
from pipeline.files import weights
from pipeline.parts.errors import InputError

# Places in the file -> our names.
BASE = {"0": "conv1", "1": "bn1", "4": "layer1", "5": "layer2", "6": "layer3"}
TOP = {"0": "layer4"}


class ButdCnn(Network):
    """The network in evaluation mode, channels last."""

    def __init__(self, weights_name: str, runtime: Runtime) -> None:
        self.trained = weights_name != weights.UNTRAINED
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            network = caffe_resnet101()
        if self.trained:
            path, _ = weights.locate(weights_name)
            fill(network, weights.read_tree(path), str(path))
        self.model = network.eval().requires_grad_(False)
        self.digest = weights.digest(self.model)
        self._place(runtime)

    def prepare(self, image: Image.Image, size: int) -> torch.Tensor:
        """Resize to a square, bilinear and without antialiasing, as OpenCV does: float32 [size, size, 3]."""
        return pixels.square_input(image, size).permute(1, 2, 0).contiguous()

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
    layers = ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4")
    network = nn.Sequential()
    for name in layers:
        network.add_module(name, getattr(whole, name))
    return network


def fill(network: nn.Module, tree: object, source: str) -> None:
    """Copy the weights of `original_updown_backbone.pth` into the network."""
    if not isinstance(tree, Mapping) or not all(isinstance(tree.get(part), Mapping) for part in ("base", "top")):
        raise InputError(f"{source}: expected the parts 'base' and 'top' of original_updown_backbone.pth")
    state = {}
    for part, places in (("base", BASE), ("top", TOP)):
        for name, value in tree[part].items():
            place, _, rest = str(name).partition(".")
            if place in places:
                state[f"{places[place]}.{rest}"] = value
    own = network.state_dict()
    needed = [name for name in own if not name.endswith("num_batches_tracked")]
    shapes = {name: tuple(value.shape) for name, value in state.items() if isinstance(value, torch.Tensor)}
    wrong = [name for name in needed if shapes.get(name) != tuple(own[name].shape)]
    if wrong:
        raise InputError(f"{source}: {len(wrong)} of {len(needed)} arrays do not fit a ResNet-101; {wrong[0]}: "
                         f"expected {tuple(own[wrong[0]].shape)}, got {shapes.get(wrong[0], 'nothing')}")
    network.load_state_dict({name: state[name] for name in needed}, strict=False)

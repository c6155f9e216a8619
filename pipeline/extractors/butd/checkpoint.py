"""Load published weights into the network: the port's pickles, and detectron2's own `.pth`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pipeline.errors import InputError
from pipeline.extractors import DETECTRON2
from pipeline.extractors.butd import caffe_order
from pipeline.files import restricted_pickle, weights

if TYPE_CHECKING:
    from pipeline.extractors.butd.network import FasterRCNN


def load(name: str) -> FasterRCNN:
    """Build the network with weights: a name in manifests/weights.yaml, a file, or "untrained" (seed 0)."""
    try:
        from pipeline.extractors.butd.network import DELTA_WEIGHTS, FasterRCNN
    except ImportError as error:
        raise InputError(f"butd needs detectron2, which cannot be used here ({error}); with torch installed, "
                         f"run: {DETECTRON2[1]}") from None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = FasterRCNN()
    if name != weights.UNTRAINED:
        path, _ = weights.locate(name)
        state = read_state(path)
        if caffe_order.is_caffe(state):
            state = caffe_order.to_detectron2(state, DELTA_WEIGHTS)
        fill(network, state, str(path))
    return network.eval().requires_grad_(False)


def read_state(path: Path) -> dict[str, torch.Tensor]:
    """Read a state dict."""
    if path.suffix != ".pkl":
        return weights.read(path)
    tree: Any = restricted_pickle.load(path)
    state = tree.get("model", tree) if isinstance(tree, Mapping) else None
    if not isinstance(state, Mapping) or not all(isinstance(name, str) and isinstance(value, np.ndarray)
                                                 for name, value in state.items()):
        raise InputError(f"{path}: expected a dict of arrays, by itself or under 'model'")
    return {name: torch.from_numpy(np.array(value)) for name, value in state.items()}


def fill(network: torch.nn.Module, state: Mapping[str, torch.Tensor], source: str) -> None:
    """Copy a state dict into the network. Its other entries (pixel means, anchors) are ignored."""
    own = network.state_dict()
    wrong = [name for name, value in own.items() if name not in state or state[name].shape != value.shape]
    if wrong:
        there = tuple(state[wrong[0]].shape) if wrong[0] in state else "nothing"
        raise InputError(f"{source}: {len(wrong)} of {len(own)} arrays do not fit BUTD with attributes; "
                         f"{wrong[0]}: expected {tuple(own[wrong[0]].shape)}, got {there}")
    network.load_state_dict({name: state[name] for name in own})

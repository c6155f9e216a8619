"""The interface of an engine, a batch's items on their way to the host, and how networks get their
weights.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch import nn

from pipeline.foundation.files import weights
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.extractors import backend
from pipeline.make.features.extractors.items import Items
from pipeline.make.features.extractors.options import EngineOptions
from pipeline.make.features.extractors.runtime import Runtime
from pipeline.make.features.store import Extra

Network = TypeVar("Network", bound=nn.Module)
# Images of equal size that a network has at once.
AT_ONCE_ON_CPU = 1
AT_ONCE = 16


@dataclass(frozen=True)
class OnDevice:
    """One image's features in the memory of a GPU or the like, until `bring` copies those of a
    batch.
    """

    features: torch.Tensor  # float32 [n, D], n at least 1
    extras: Mapping[str, torch.Tensor]  # name -> [n, ...], on the device or in the host's memory


Computed = Items | OnDevice


def computed(features: torch.Tensor, extras: Mapping[str, torch.Tensor] | None = None) -> Computed:
    """Collect what a network computed of an image, float32 [n, D]; as arrays if it is in the host's
    memory.
    """
    items = OnDevice(features, extras or {})
    return in_place(items) if features.device.type == "cpu" else items


def in_place(items: OnDevice) -> Items:
    """View tensors in the host's memory as arrays."""
    extras = {name: values.numpy() for name, values in items.extras.items()}
    return Items(items.features.numpy(), extras)


class Extractor(Protocol):
    """An engine with its weights loaded.

    It reads photographs, and clips if it has `prepare_frames`. If `READS` of its options is
    "captions", it reads captions, which `prepare` then gets as texts, of size 0 x 0.
    """

    reported_as: str  # the name of its features by its options, see `options.EngineOptions`
    # whether features depend on which image it is, `image.info["file"]`, and not on pixels alone
    depends_on_id: bool
    items: int  # N, the most items an image can have
    dimension: int  # D
    extras: Mapping[str, Extra]  # what is stored beside the features
    trained: bool  # false if the network's weights were not learned
    weights: str  # SHA-256 over the network's tensors
    settings: Mapping[str, Any]  # all that its features depend on except the runtime
    backend: str  # the library that runs the network, see `backend.chosen`

    def prepare(self, image: Any) -> Any:
        """The element of a batch for `extract`, of an upright RGB image or a caption; ImageError if
        unusable.
        """

    def extract(self, batch: list[Any], sizes: list[tuple[int, int]]) -> Sequence[Computed]:
        """The items of each of a batch of prepared images or captions; sizes: width, height in
        pixels, as decoded.
        """


class Engine:
    """What an engine says of itself by its options; by default a trained one of photographs, on
    torch.
    """

    depends_on_id = False
    backend = backend.TORCH
    extras: Mapping[str, Extra] = {}

    def __init__(self, runtime: Runtime, options: EngineOptions) -> None:
        self.runtime: Runtime = runtime
        self.options: Any = options
        self.settings: Mapping[str, Any] = options.recorded()
        self.reported_as = options.reported_as
        self.trained = getattr(options, "weights", None) != weights.UNTRAINED


class MapEngine(Engine, ABC):
    """The base of engines whose network makes a feature map of an image of any size. A subclass
    sets `items`.

    On a GPU, images of equal size are one batch; on a CPU that gains nothing, and takes torch a
    fifth longer. Images are not padded to equal sizes, because that would change the features near
    the border.
    feature_maps: the network's maps of stacked prepared images. free: dimensions in which the
        stacks differ.
    """

    dimension = 2048

    def __init__(
        self,
        runtime: Runtime,
        options: EngineOptions,
        network: nn.Module,
        feature_maps: backend.Forward,
        free: tuple[int, ...],
    ) -> None:
        super().__init__(runtime, options)
        self.network: Any = network
        self.weights = weights.digest(network)
        self.backend = runtime.backend
        self.at_once = AT_ONCE_ON_CPU if runtime.on_cpu else AT_ONCE
        network.to(runtime.device).to(memory_format=torch.channels_last)
        self._feature_maps = backend.by(runtime.backend, network, feature_maps, free)

    @torch.inference_mode()
    def extract(self, batch: list[Any], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute the items of each image."""
        items: dict[int, Computed] = {}
        for place, feature_map in self.feature_maps(batch):
            items[place] = self.of_image(feature_map, batch[place], sizes[place])
        return [items[place] for place in range(len(batch))]

    @abstractmethod
    def of_image(self, feature_map: torch.Tensor, prepared: Any, size: tuple[int, int]) -> Computed:
        """The items of one image of a size in pixels, by its feature_map, float32 [C, h, w], and
        itself prepared.
        """

    def feature_maps(self, batch: Sequence[torch.Tensor]) -> Iterator[tuple[int, torch.Tensor]]:
        """Compute the map of each image, float32 [C, h, w], with its place in the batch."""
        shapes = [prepared.shape for prepared in batch]
        for group in of_one_shape(shapes, self.at_once):
            stacked = torch.stack([batch[place] for place in group])
            with self.runtime.autocast():
                maps = self._feature_maps(self.runtime.send(stacked)).float()
            yield from zip(group, maps, strict=True)


def of_one_shape(shapes: Sequence[Hashable], at_once: int) -> Iterator[list[int]]:
    """Divide the places of images into groups of one shape, each of at most `at_once`."""
    by_shape: dict[Hashable, list[int]] = {}
    for place, shape in enumerate(shapes):
        by_shape.setdefault(shape, []).append(place)
    for places in by_shape.values():
        for first in range(0, len(places), at_once):
            yield places[first : first + at_once]


def bring(batch: Sequence[Computed], dtype: str) -> list[Items]:
    """Copy a batch's items to the host. All copies of a CUDA device run at once, into pinned
    memory.
    """
    copies: list[Computed] = []
    devices = set()
    for items in batch:
        if isinstance(items, OnDevice):
            devices.add(items.features.device)
            features = _copy(rounded(items.features, dtype))
            extras = {name: _copy(values) for name, values in items.extras.items()}
            items = OnDevice(features, extras)
        copies.append(items)
    for device in devices:
        if device.type == "cuda":
            # Until then the copies are on their way.
            torch.cuda.current_stream(device).synchronize()
    return [items if isinstance(items, Items) else in_place(items) for items in copies]


def rounded(features: torch.Tensor, dtype: str) -> torch.Tensor:
    """Round features as a store does, to the dtype "float16" or "float32"."""
    # A number beyond its range becomes an infinity, which the store refuses, also where rounding
    # would bring it back to the largest number.
    if dtype == "float32":
        return features
    kind: torch.dtype = getattr(torch, dtype)
    is_beyond = features.abs() > torch.finfo(kind).max
    return features.to(kind).masked_fill_(is_beyond, math.inf)


def _copy(values: torch.Tensor) -> torch.Tensor:
    """Begin to copy. Memory that a CUDA device copies to without waiting is pinned, by torch."""
    return values.to("cpu", non_blocking=values.device.type == "cuda")


def with_weights(
    make: Callable[[], Network],
    name: str,
    read: Callable[[Path], Mapping[str, torch.Tensor]],
    title: str,
    optional: str = "$^",
) -> Network:
    """Make a network in evaluation mode, with weights by name, from a file, or "untrained": drawn
    with seed 0.
    """
    if name == weights.UNTRAINED:
        return _drawn(make)
    path, checkpoint = weights.locate(name)  # what is wrong with a file is said at once
    state = read(path)
    network = _drawn(make)
    if checkpoint is not None and checkpoint.layout == "ordered":
        state = dict(zip(network.state_dict(), state.values(), strict=False))
    fill(network, state, str(path), title, optional)
    return network


def _drawn(make: Callable[[], Network]) -> Network:
    """Make a network with seed 0."""
    with torch.random.fork_rng(devices=[]):  # the generator of the process stays as it is
        torch.manual_seed(0)
        network = make()
    return network.eval().requires_grad_(False)


def fill(
    network: nn.Module,
    state: Mapping[str, torch.Tensor],
    source: str,
    title: str,
    optional: str = "$^",
) -> None:
    """Copy a state dict into a network. Entries that the network lacks are ignored."""
    # `source` and `title` name the file and the network in an error. Arrays whose names match
    # `optional`, a regular expression, keep their values where the state dict has none of their
    # shape.
    weights = network.state_dict()
    fits = {}
    for name, value in weights.items():
        if name in state and state[name].shape == value.shape:
            fits[name] = state[name]
    needed = [name for name in weights if not re.match(optional, name)]
    wrong = [name for name in needed if name not in fits]
    if wrong:
        first = wrong[0]
        got = tuple(state[first].shape) if first in state else "nothing"
        raise InputError(
            f"{source}: {len(wrong)} of {len(needed)} arrays do not fit {title}; {first}: expected "
            f"{tuple(weights[first].shape)}, got {got}; name weights of this network"
        )
    network.load_state_dict(fits, strict=False)


def without_classifier(resnet: nn.Module) -> nn.Sequential:
    """Take the layers of torchvision's ResNet that make its last map."""
    layers = nn.Sequential()
    for name in ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4"):
        layers.add_module(name, getattr(resnet, name))
    return layers

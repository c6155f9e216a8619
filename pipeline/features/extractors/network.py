"""A timm network with its weights and its own preprocessing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import timm
import torch
from PIL import Image
from timm.data import resolve_model_data_config

from pipeline.features.extractors import backend
from pipeline.features.extractors.runtime import Runtime
from pipeline.files import images, weights
from pipeline.parts.errors import InputError

# Networks that timm does not have: name -> (module, class), with the surface of `Network`.
OTHERS = {"butd_resnet101": ("pipeline.features.extractors.butd_cnn", "ButdCnn")}


def load(name: str, weights_name: str, runtime: Runtime, **options: Any) -> Network:
    """Load a network."""
    if name in OTHERS:
        module, kind = OTHERS[name]
        other: Network = getattr(import_module(module), kind)(weights_name, runtime)
        return other
    return Network(name, weights_name, runtime, **options)


class Network:
    """A timm model in evaluation mode, channels last."""

    def __init__(self, name: str, weights_name: str, runtime: Runtime, **options: Any) -> None:
        self.trained = weights_name != weights.UNTRAINED
        self.model = _create(name, weights_name, options).eval().requires_grad_(False)
        self.digest = weights.digest(self.model)
        config = resolve_model_data_config(self.model)
        self._mean = torch.tensor(config["mean"]).mul(255).view(1, 3, 1, 1)
        self._std = torch.tensor(config["std"]).mul(255).view(1, 3, 1, 1)
        self._place(runtime)

    def _place(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.model.to(runtime.device).to(memory_format=torch.channels_last)
        self._graph = None if runtime.backend == backend.TORCH else backend.Graph(self.model, self.forward)

    def prepare(self, image: Image.Image, size: int) -> torch.Tensor:
        """Resize to a square, ignoring the aspect ratio and without cropping: uint8 [size, size, 3]."""
        return torch.from_numpy(np.array(images.resize(image, size, size)))

    @torch.inference_mode()
    def features(self, batch: list[torch.Tensor]) -> torch.Tensor:
        """Compute the network's last map or tokens, before its head: float32 [B, ...]."""
        pixels = torch.stack(batch)
        return self._run(pixels) if self._graph is None else self._graph(pixels)

    @torch.inference_mode()
    def probe(self, size: int) -> torch.Tensor:
        """Compute the features of one black image with torch, for their shape."""
        return self._run(self.prepare(Image.new("RGB", (1, 1)), size)[None])

    def _run(self, pixels: torch.Tensor) -> torch.Tensor:
        there = self.runtime.send(pixels)
        lower = self.runtime.precision != "fp32"
        with torch.autocast(there.device.type, self.runtime.dtype, enabled=lower):
            return self.forward(there).float()

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute the last map or tokens [B, ...] in the surrounding autocast's precision.

        Gradients reach the weights.
        """
        planes = pixels.permute(0, 3, 1, 2)  # already channels last
        normal = planes.float().sub_(self._mean.to(planes.device)).div_(self._std.to(planes.device))
        map_or_tokens: torch.Tensor = self.model.forward_features(normal)  # type: ignore[operator]
        return map_or_tokens


def _create(name: str, weights_name: str, options: dict[str, Any]) -> torch.nn.Module:
    known = weights.checkpoints().get(weights_name)
    if ":" in name:
        raise InputError(f"network {name!r}: expected a name of timm, not an address; `timm.list_models()` names them")
    if known is not None and known.timm and known.timm != name:
        raise InputError(f"weights {weights_name!r} are of {known.timm}, the network is {name!r}; use the same name")
    try:
        if known is not None and known.timm:
            return timm.create_model(known.timm, pretrained=True, num_classes=0, **options)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = timm.create_model(name, pretrained=False, **options)
    except (RuntimeError, TypeError, AssertionError) as error:
        raise InputError(f"network {name!r}: {error}; `timm.list_models()` names them") from None
    except OSError:
        assert known is not None  # nothing else is downloaded
        raise weights.missing(weights_name, known) from None
    if weights_name != weights.UNTRAINED:
        path, checkpoint = weights.locate(weights_name)
        _load(model, weights.read(path), str(path), checkpoint is not None and checkpoint.layout == "ordered")
    return model


def _load(model: torch.nn.Module, state: dict[str, torch.Tensor], source: str, ordered: bool) -> None:
    own = model.state_dict()
    if ordered:
        state = dict(zip(own, state.values(), strict=False))
    wrong = [name for name, value in own.items() if name not in state or state[name].shape != value.shape]
    needed = [name for name in wrong if not name.startswith(("classifier", "fc.", "head."))]
    if needed:
        there = tuple(state[needed[0]].shape) if needed[0] in state else "nothing"
        raise InputError(f"{source}: does not fit the network: {needed[0]} expected {tuple(own[needed[0]].shape)}, "
                         f"got {there}")
    model.load_state_dict({name: state[name] for name in own if name not in wrong}, strict=False)

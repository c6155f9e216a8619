"""A timm network with its weights and its own preprocessing."""

from typing import Any

import numpy as np
import timm
import torch
from PIL import Image
from timm.data import resolve_model_data_config

from pipeline.features.extractors import backend, base
from pipeline.features.extractors.runtime import Runtime
from pipeline.files import images, weights
from pipeline.parts.errors import InputError


class Network:
    """A timm model in evaluation mode, channels last."""

    def __init__(self, name: str, weights_name: str, runtime: Runtime, **options: Any) -> None:
        self.trained, self.runtime = weights_name != weights.UNTRAINED, runtime
        self.model = self.build(name, weights_name, options).eval().requires_grad_(False)
        self.digest = weights.digest(self.model)
        self.model.to(runtime.device).to(memory_format=torch.channels_last)
        self._graph = None if runtime.backend == backend.TORCH else backend.Graph(self.model, self.forward)

    def build(self, name: str, weights_name: str, options: dict[str, Any]) -> torch.nn.Module:
        """Create the model with its weights, and read how its pixels are scaled."""
        model = _create(name, weights_name, options)
        config = resolve_model_data_config(model)
        self._mean, self._std = (torch.tensor(config[key]).mul(255).view(1, 3, 1, 1) for key in ("mean", "std"))
        return model

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
        with self.runtime.autocast():
            return self.forward(self.runtime.send(pixels)).float()

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
        with base.seeded():
            model = timm.create_model(name, pretrained=False, **options)
    except (RuntimeError, TypeError, AssertionError) as error:
        raise InputError(f"network {name!r}: {error}; `timm.list_models()` names them") from None
    except OSError:
        assert known is not None  # nothing else is downloaded
        raise weights.missing(weights_name, known) from None
    if weights_name != weights.UNTRAINED:
        path, checkpoint = weights.locate(weights_name)
        state = weights.read(path)
        if checkpoint is not None and checkpoint.layout == "ordered":
            state = dict(zip(model.state_dict(), state.values(), strict=False))
        base.fill(model, state, str(path), "the network", optional=r"classifier|fc\.|head\.")
    return model

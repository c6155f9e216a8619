"""Patch features: the tokens of a vision transformer (Dosovitskiy et al. 2021; VSE+2AD section 4.2)."""

from collections.abc import Mapping
from typing import Any

import torch
from PIL import Image

from pipeline.features.extractors.base import Computed, computed
from pipeline.features.extractors.network import Network
from pipeline.features.extractors.runtime import Runtime
from pipeline.features.store import Extra
from pipeline.parts.errors import InputError
from pipeline.settings import Count, Section


class Options(Section):
    """Settings of patch features."""

    network: str = "vit_base_patch16_224.orig_in21k_ft_in1k"  # any timm ViT
    weights: str = "vit-base-patch16-224"  # a name in manifests/weights.yaml, a file, or "untrained"
    image_size: Count = 224  # pixels a side
    cls: bool = True  # whether the class token is kept, as the first item
    ALWAYS_RECORDED = frozenset({"network", "weights", "image_size", "cls"})


class Patch:
    """A ViT's tokens after its last block and norm; registers and distillation tokens are left out."""

    extras: Mapping[str, Extra] = {}

    def __init__(self, options: Options, runtime: Runtime) -> None:
        self.options = options
        self.network = Network(options.network, options.weights, runtime, img_size=options.image_size)
        self.settings: Mapping[str, Any] = options.recorded()
        self.trained, self.weights = self.network.trained, self.network.digest
        self.reported_as = f"patch-{options.network}" + ("" if options.cls else "-nocls")
        model = self.network.model
        self.prefix = int(getattr(model, "num_prefix_tokens", 0))
        if options.cls and not _has_class_token(model):
            raise InputError(f"patch: {options.network} has no class token; set cls: false")
        self.backend = runtime.backend
        self.items, self.dimension = self._chosen(self.network.probe(options.image_size)).shape[1:]

    def prepare(self, image: Image.Image) -> torch.Tensor:
        """Resize to a square: uint8 [S, S, 3]."""
        return self.network.prepare(image, self.options.image_size)

    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute the class token, if the options keep it, and the patches row by row."""
        return [computed(row) for row in self._tokens(batch)]

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute items [B, N, D] of pixels [B, S, S, 3] with gradients to the network's weights."""
        return self._chosen(self.network.forward(pixels))

    def _tokens(self, batch: list[torch.Tensor]) -> torch.Tensor:
        return self._chosen(self.network.features(batch))

    def _chosen(self, tokens: torch.Tensor) -> torch.Tensor:
        if tokens.ndim != 3:
            raise InputError(f"patch: expected tokens [B, N, D], {self.options.network} gives {tuple(tokens.shape)}; "
                             "choose a ViT")
        patches = tokens[:, self.prefix:]
        return torch.cat([tokens[:, :1], patches], dim=1) if self.options.cls else patches


def _has_class_token(model: torch.nn.Module) -> bool:
    """Whether the first of a network's prefix tokens is its class token; the others are registers, say.

    DINOv3's class in timm has no `has_class_token`. A network may have registers and no class token.
    """
    return bool(getattr(model, "has_class_token", getattr(model, "cls_token", None) is not None))

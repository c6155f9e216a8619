"""Patch features: the tokens of a vision transformer (Dosovitskiy et al. 2021; VSE+2AD section 4.2)."""

import torch

from pipeline.features.extractors.base import Computed, computed
from pipeline.features.extractors.network import NetworkEngine, NetworkOptions
from pipeline.features.extractors.runtime import Runtime
from pipeline.parts.errors import InputError
from pipeline.settings import Count


class Options(NetworkOptions):
    """Settings of patch features, of any timm ViT."""

    network: str = "vit_base_patch16_224.orig_in21k_ft_in1k"
    weights: str = "vit-base-patch16-224"  # a name in manifests/weights.yaml, a file, or "untrained"
    image_size: Count = 224  # pixels a side
    cls: bool = True  # whether the class token is kept, as the first item
    ALWAYS_RECORDED = NetworkOptions.ALWAYS_RECORDED | {"cls"}


class Patch(NetworkEngine):
    """A ViT's tokens after its last block and norm; registers and distillation tokens are left out."""

    def __init__(self, options: Options, runtime: Runtime) -> None:
        super().__init__(options, runtime, img_size=options.image_size)
        self.reported_as = f"patch-{options.network}" + ("" if options.cls else "-nocls")
        self.prefix = int(getattr(self.network.model, "num_prefix_tokens", 0))
        # DINOv3's class in timm has no `has_class_token`; a network may have registers and no class token.
        model = self.network.model
        if options.cls and not getattr(model, "has_class_token", getattr(model, "cls_token", None) is not None):
            raise InputError(f"patch: {options.network} has no class token; set cls: false")
        self.items, self.dimension = self._chosen(self.network.probe(self.size)).shape[1:]

    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute the class token, if the options keep it, and the patches row by row."""
        return [computed(row) for row in self._chosen(self.network.features(batch))]

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute items [B, N, D] of pixels [B, S, S, 3] with gradients to the network's weights."""
        return self._chosen(self.network.forward(pixels))

    def _chosen(self, tokens: torch.Tensor) -> torch.Tensor:
        if tokens.ndim != 3:
            raise InputError(f"patch: expected tokens [B, N, D], {self.settings['network']} gives "
                             f"{tuple(tokens.shape)}; choose a ViT")
        patches = tokens[:, self.prefix:]
        return torch.cat([tokens[:, :1], patches], dim=1) if self.settings["cls"] else patches

"""Frame features: of each frame of a clip the global average of a network's last map (VSE∞ section 5.1.2)."""

from collections.abc import Sequence
from itertools import chain

import torch
from PIL import Image

from pipeline.features.extractors.base import Computed, computed
from pipeline.features.extractors.grid import as_map
from pipeline.features.extractors.network import NetworkEngine, NetworkOptions
from pipeline.features.extractors.runtime import Runtime
from pipeline.parts.errors import InputError
from pipeline.settings import Count

# Frames that the network has at once: on a CPU as many as stay in its cache, on a GPU no more than memory has room for.
AT_ONCE_ON_CPU, AT_ONCE = 8, 128


class Options(NetworkOptions):
    """Settings of frame features."""

    image_size: Count = 224  # pixels a side
    frames: Count = 20  # the most frames of a clip
    ALWAYS_RECORDED = NetworkOptions.ALWAYS_RECORDED | {"frames"}


class Frame(NetworkEngine):
    """One item a frame, in order of time. A photograph is a clip of one frame."""

    def __init__(self, options: Options, runtime: Runtime) -> None:
        super().__init__(options, runtime)
        self.reported_as = f"frame{options.frames}-{options.network}"
        self.items = self.frames = options.frames
        self.at_once = AT_ONCE_ON_CPU if runtime.on_cpu else AT_ONCE
        self.prefix = int(getattr(self.network.model, "num_prefix_tokens", 0))
        try:
            self.dimension = self._averaged(self.network.probe(self.size)).shape[1]
        except (AssertionError, RuntimeError) as error:  # a ViT has one size
            raise InputError(f"frame: {self.settings['network']} takes no images of {self.size} pixels: "
                             f"{str(error).splitlines()[0]}") from None

    def prepare(self, image: Image.Image) -> torch.Tensor:
        """Resize a photograph to a square: [1, S, S, 3]."""
        return self.prepare_frames([image])

    def prepare_frames(self, frames: Sequence[Image.Image]) -> torch.Tensor:
        """Resize a clip's frames to squares: [T, S, S, 3], uint8 for timm's networks, float32 for BUTD's."""
        return torch.stack([self.network.prepare(frame, self.size) for frame in frames])

    def extract(self, batch: list[torch.Tensor], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute an item for each frame."""
        frames = list(chain.from_iterable(batch))
        averages = [self._averaged(self.network.features(frames[start:start + self.at_once]))
                    for start in range(0, len(frames), self.at_once)]
        return [computed(clip) for clip in torch.cat(averages).split([len(clip) for clip in batch])]

    def _averaged(self, given: torch.Tensor) -> torch.Tensor:
        """[B, D] of maps or tokens; a ViT's class token and registers are left out."""
        if given.ndim == 3:
            return given[:, self.prefix:].mean(1)
        if given.ndim == 4:
            return as_map(given, self.network, 1).mean((2, 3))
        raise InputError(f"frame: expected a map or tokens, {self.settings['network']} gives {tuple(given.shape)}")

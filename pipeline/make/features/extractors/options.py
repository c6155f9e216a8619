"""The options of engines, and what an engine says of itself before it is loaded."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pipeline.foundation.parts.errors import similar
from pipeline.foundation.settings import Count, Section

# Pixels: detectors' usual short side, and the most that the long side may have.
RESIZED = (600, 1000)
SQUARE = 512  # pixels a side of grids and windows


class EngineOptions(Section):
    """The base of engines' options. An option that changes the features is part of
    `reported_as`.
    """

    # Weights and precision are added to it, see
    # `pipeline.make.features.extraction.request.feature_name`.

    READS: ClassVar[str] = "images"  # Or "captions", what the engine reads
    # Packages besides this one's own that the engine imports -> the command that installs them.
    PACKAGES: ClassVar[Mapping[str, str]] = {}
    # Packages on whose versions the features depend.
    LIBRARIES: ClassVar[tuple[str, ...]] = ("torch", "torchvision", "timm", "pillow", "numpy")

    # Its options that name a file or folder, and are no weights.
    FILES: ClassVar[tuple[str, ...]] = ()

    @property
    def unnamed(self) -> str:
        """What the settings must name before it can extract anything, in one line; "" for
        nothing.
        """
        for option in self.FILES:
            name = getattr(self, option)
            if name and not Path(name).exists():
                path = Path(name)
                return f"{option} {path}: there is no such file or folder{similar(path)}"
        return ""

    @property
    @abstractmethod
    def reported_as(self) -> str:
        """The name of the features in stores, heads and tables."""


def of_sides(short: int, long: int) -> list[str]:
    """The end of a name: how large images are, where that is unusual."""
    if (short, long) == RESIZED:
        return []
    return [f"{short}px", f"{long}px"]


class NetworkOptions(EngineOptions):
    """Options of every engine that runs one network over a square."""

    network: str = "resnet152.tv_in1k"  # Any network of timm
    weights: str = "resnet152-in1k"  # A name in manifests/weights.yaml, a file, or "untrained"
    image_size: Count = SQUARE  # Pixels a side of the square to which the image is resized
    ALWAYS_RECORDED = frozenset({"network", "weights", "image_size"})

    @property
    def _size(self) -> str:
        if self.image_size == SQUARE:
            return ""
        return f"-{self.image_size}px"


class PyramidOptions(NetworkOptions):
    """Options of windows."""

    @property
    def reported_as(self) -> str:
        return f"pyramid36-{self.network}{self._size}"


class GridOptions(NetworkOptions):
    """grid: Items a side; a larger map is averaged down to it. Networks also: butd_resnet101."""

    grid: Count = 16
    ALWAYS_RECORDED = NetworkOptions.ALWAYS_RECORDED | {"grid"}

    @property
    def reported_as(self) -> str:
        return f"grid{self.grid}-{self.network}{self._size}"


class PatchOptions(NetworkOptions):
    """cls: Whether the class token is kept, as the first item. Networks: timm's ViTs."""

    network: str = "vit_base_patch16_224.orig_in21k_ft_in1k"
    weights: str = "vit-base-patch16-224"
    image_size: Count = 224
    cls: bool = True
    ALWAYS_RECORDED = NetworkOptions.ALWAYS_RECORDED | {"cls"}

    @property
    def reported_as(self) -> str:
        name = f"patch-{self.network}"
        if not self.cls:
            name += "-nocls"
        # A ViT's name has its own size.
        if f"_{self.image_size}" not in self.network:
            name += f"-{self.image_size}px"
        return name


class FrameOptions(NetworkOptions):
    """frames: The most frames of a clip."""

    image_size: Count = 224
    frames: Count = 20
    ALWAYS_RECORDED = NetworkOptions.ALWAYS_RECORDED | {"frames"}

    @property
    def reported_as(self) -> str:
        return f"frame{self.frames}-{self.network}{self._size}"


class CaptionTokensOptions(EngineOptions):
    """tokens: The most tokens of a caption."""

    weights: str  # A checkpoint's folder, also one of sentence-transformers
    tokens: Annotated[int, Field(ge=3)] = 64
    ALWAYS_RECORDED = frozenset({"weights", "tokens"})
    READS: ClassVar[str] = "captions"
    LIBRARIES: ClassVar[tuple[str, ...]] = ("torch", "transformers", "numpy")

    @property
    def reported_as(self) -> str:
        return f"text-tower{self.tokens}"


class GridFeatsOptions(EngineOptions):
    """Grid features of a detector."""

    network: Literal["resnext101_32x8d", "resnext152_32x8d"] = "resnext101_32x8d"  # Which backbone
    weights: str = "grid-feats-x101"  # A name in manifests/weights.yaml, a file, or "untrained"
    short_side: Count = RESIZED[0]  # Pixels to which the image's short side is resized
    long_side: Count = RESIZED[1]  # The most pixels that the long side may then have
    ALWAYS_RECORDED = frozenset({"network", "weights", "short_side", "long_side"})

    @property
    def reported_as(self) -> str:
        depth = self.network.removeprefix("resnext").partition("_")[0]
        sides = of_sides(self.short_side, self.long_side)
        return "-".join([f"grid-feats-x{depth}", *sides])


class GridFeatsX152Options(GridFeatsOptions):
    """The larger backbone."""

    network: Literal["resnext101_32x8d", "resnext152_32x8d"] = "resnext152_32x8d"
    weights: str = "grid-feats-x152"

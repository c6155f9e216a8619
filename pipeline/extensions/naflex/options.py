"""The options of the engine `naflex`."""

from typing import ClassVar

from pipeline.foundation.settings import Count
from pipeline.make.features.extractors.options import EngineOptions


class NaFlexOptions(EngineOptions):
    """patches: The most patches of an image."""

    weights: str  # A checkpoint's folder
    patches: Count = 256
    ALWAYS_RECORDED = frozenset({"weights", "patches"})
    LIBRARIES: ClassVar[tuple[str, ...]] = (*EngineOptions.LIBRARIES, "transformers")

    @property
    def reported_as(self) -> str:
        return f"naflex{self.patches}-siglip2"

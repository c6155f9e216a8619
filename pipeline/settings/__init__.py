"""The settings in `params.yaml`, checked."""

from typing import TYPE_CHECKING

from pipeline import lazy

if TYPE_CHECKING:
    from pipeline.settings.loading import load
    from pipeline.settings.schema import (
        Compute,
        Count,
        EngineSettings,
        Evaluate,
        Extract,
        Feature,
        Name,
        Named,
        Recipe,
        Report,
        Run,
        Sample,
        Score,
        Section,
        Settings,
        Share,
        Synthetic,
        Text,
        Throughput,
        Training,
        first_fault,
    )

__all__ = [
    "Compute",
    "Count",
    "EngineSettings",
    "Evaluate",
    "Extract",
    "Feature",
    "Name",
    "Named",
    "Recipe",
    "Report",
    "Run",
    "Sample",
    "Score",
    "Section",
    "Settings",
    "Share",
    "Synthetic",
    "Text",
    "Throughput",
    "Training",
    "first_fault",
    "load",
]

lazy.offer(__name__)

"""The checked settings: those of `params.yaml`, and of `defaults.yaml` what that leaves out."""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.parts.section import Section, first_fault
    from pipeline.settings.loading import SHIPPED, load
    from pipeline.settings.parts import ArchitectureSettings, PoolingSettings
    from pipeline.settings.recipe import (
        FineTuning,
        Learning,
        Length,
        Noise,
        Recipe,
        Training,
        Variation,
        named,
    )
    from pipeline.settings.run import Encoder, Run
    from pipeline.settings.schema import Evaluate, Extract, Report, Settings, Synthetic, Throughput
    from pipeline.settings.section import Count, Name, Share

lazy.imports(__name__)

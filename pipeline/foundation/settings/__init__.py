"""The checked settings: those of `params.yaml`, and of `defaults.yaml` what that leaves out."""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.foundation.parts.section import Section, first_fault
    from pipeline.foundation.settings import written
    from pipeline.foundation.settings.judging import Evaluate, JudgeSettings, load_for_judging
    from pipeline.foundation.settings.loading import load
    from pipeline.foundation.settings.parts import (
        ArchitectureSettings,
        ObjectiveSettings,
        PoolingSettings,
    )
    from pipeline.foundation.settings.recipe import (
        FineTuning,
        Learning,
        Length,
        Noise,
        Recipe,
        Training,
        Variation,
        named,
    )
    from pipeline.foundation.settings.run import Encoder, Run
    from pipeline.foundation.settings.schema import (
        AnySettings,
        Extract,
        Report,
        Settings,
        Synthetic,
        Throughput,
    )
    from pipeline.foundation.settings.section import Count, Name, Share
    from pipeline.foundation.settings.written import SHIPPED

lazy.imports(__name__)

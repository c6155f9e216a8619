"""The checked settings: those of `params.yaml`, and of `defaults.yaml` what that leaves out."""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.settings.loading import SHIPPED, load
    from pipeline.settings.recipe import Noise, Recipe, Training, Variation, named
    from pipeline.settings.run import Encoder, Run
    from pipeline.settings.schema import Evaluate, Extract, Report, Settings, Synthetic, Throughput
    from pipeline.settings.section import Count, Name, Named, Section, Share, first_fault

lazy.offer(__name__)

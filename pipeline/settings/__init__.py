"""The settings, checked: those that ship in `defaults.yaml`, under those in `params.yaml`."""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.settings.loading import load
    from pipeline.settings.recipe import Noise, Recipe, Training
    from pipeline.settings.run import Run
    from pipeline.settings.schema import Settings
    from pipeline.settings.section import Count, Name, Named, Section, Share, first_fault
    from pipeline.settings.steps import Evaluate, Extract, Report, Synthetic, Throughput

lazy.offer(__name__)

"""The schema of the settings: all sections, and what is looked up in several of them."""

from typing import Any

from pipeline.parts.errors import unknown
from pipeline.settings import steps
from pipeline.settings.recipe import Recipe, Training
from pipeline.settings.run import Feature, Run
from pipeline.settings.section import Name, Section

DEFAULT_PRESET = "light"


class Settings(Section):
    """All settings."""

    run: Run
    sample: steps.Sample
    sample_video: steps.SampleVideo = steps.SampleVideo()
    compute: steps.Compute = steps.Compute()
    presets: dict[Name, Name]
    features: dict[Name, dict[Feature, steps.EngineSettings]]
    extract: steps.Extract
    recipes: dict[Name, Recipe]
    training: dict[Name, Training]
    score: steps.Score
    evaluate: steps.Evaluate
    synthetic: steps.Synthetic
    throughput: steps.Throughput
    tables: list[str]
    figures: list[str]
    typesetting: steps.Typesetting = steps.Typesetting()
    report: steps.Report

    def recipe(self, name: str) -> Recipe:
        """Look up a recipe.

        Args:
            name: Its name.

        Returns:
            The recipe.

        Raises:
            InputError: For an unknown name.
        """
        return _named(self.recipes, name, "recipe")

    def preset_of(self, dataset: str) -> str:
        """Look up the preset of a data set.

        Args:
            dataset: Its name.

        Returns:
            The preset's name.
        """
        return self.presets.get(dataset, DEFAULT_PRESET)

    def training_of(self, dataset: str) -> Training:
        """Look up how heads of a data set are trained: its own section, or that of its preset.

        Args:
            dataset: Its name.

        Returns:
            The section.

        Raises:
            InputError: If there is neither.
        """
        name = dataset if dataset in self.training else self.preset_of(dataset)
        return _named(self.training, name, "section of training")

    def engine_of(self, dataset: str, feature: str) -> steps.EngineSettings:
        """Look up the engine that makes a feature of a data set, by its preset.

        Args:
            dataset: Its name.
            feature: The feature's name.

        Returns:
            The engine's settings.

        Raises:
            InputError: If the preset has no engine for the feature.
        """
        preset = self.preset_of(dataset)
        return _named(_named(self.features, preset, "preset"), feature, f"feature of the preset {preset}:")


def _named(section: dict[Any, Any], name: str, kind: str) -> Any:
    if name not in section:
        raise unknown(kind, name, section)
    return section[name]

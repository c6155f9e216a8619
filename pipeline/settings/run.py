"""The section `run`: what `dvc repro` makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from pipeline.features import FEATURES, of_ensemble
from pipeline.paths import rescored_name
from pipeline.settings.section import Axis, Name, Named, Section, without_repeats

if TYPE_CHECKING:
    Feature = str
else:
    Feature = Literal[tuple(FEATURES)]


def _known_text(name: str) -> str:
    from pipeline.text import TEXTS  # a room above this one: text encoders take settings

    if name not in TEXTS:
        raise ValueError(f"expected one of {', '.join(TEXTS)}")
    return name


Text = Annotated[str, AfterValidator(_known_text)]


class Run(Section):
    """What `dvc repro` runs: every recipe on every feature with every text encoder and seed, and their ensembles.

    rescorers: Each makes one more system of every head and ensemble, except of ablations.
    ablations: Recipes that are trained on the first feature with the first text encoder only.
    """

    dataset: Name
    features: Axis[Feature]
    ensembles: Annotated[list[str], AfterValidator(without_repeats)]
    texts: Axis[Text]
    recipes: Axis[Name]
    seeds: Axis[Annotated[int, Field(ge=0, lt=2**32)]]
    ablations: Annotated[list[Name], AfterValidator(without_repeats)]
    rescorers: list[Named] = Field(default_factory=list)

    @field_validator("rescorers")
    @classmethod
    def _have_names_of_their_own(cls, steps: list[Named]) -> list[Named]:
        without_repeats([rescored_name("", step) for step in steps])  # both would make the same systems
        return steps

    @field_validator("ensembles")
    @classmethod
    def _are_of_features(cls, names: list[str]) -> list[str]:
        for name in names:
            if not of_ensemble(name):
                known = ", ".join(f"{feature.letter} ({name})" for name, feature in FEATURES.items())
                raise ValueError(f"{name!r} is no ensemble; expected letters of {known}, in this order")
        return names

    @field_validator("ablations")
    @classmethod
    def _are_no_recipes_of_the_run(cls, names: list[str], others: ValidationInfo) -> list[str]:
        for name in names:
            if name in others.data.get("recipes", ()):
                raise ValueError(f"{name!r} stands in run.recipes already; name it in one of the two")
        return names

    @property
    def left_out(self) -> dict[str, list[str]]:
        """The ensembles that cannot be made, each with its features that the run leaves out."""
        lacking = {name: [each for each in of_ensemble(name) if each not in self.features] for name in self.ensembles}
        return {name: features for name, features in lacking.items() if features}

"""A recipe that is varied on the command line, and its new name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.parts.errors import InputError
from pipeline.settings import Named, Noise, Recipe
from pipeline.settings.recipe import language_tag


@dataclass(frozen=True)
class Variation:
    """Replacements for parts of a recipe, by name and with default options; None keeps the recipe's own part.

    Raises:
        InputError: If all three poolings are given.
    """

    pooling: str | None = None  # the pooling of both sides, or of the side that is not given by itself
    image_pooling: str | None = None  # the pooling of images
    text_pooling: str | None = None  # the pooling of captions
    objective: str | None = None  # the objective
    finetune: bool = False  # whether the features' network is trained too
    languages: tuple[str, ...] = ()  # the languages that are trained on
    noise: float = 0.0  # the share of training captions that exchange their images; 0 keeps the recipe's own

    def __post_init__(self) -> None:
        if self.pooling and self.image_pooling and self.text_pooling:
            raise InputError(f"leave out the pooling {self.pooling} of both sides: each side has one of its own")

    @property
    def _tags(self) -> list[str]:
        try:
            return sorted({language_tag(name) for name in self.languages})
        except ValueError as error:
            raise InputError(f"--language: {error}") from None

    @property
    def replaced(self) -> dict[str, Any]:
        """The recipe's keys that change, with their new values."""
        names = {"image_pooling": self.image_pooling or self.pooling,
                 "text_pooling": self.text_pooling or self.pooling, "objective": self.objective}
        finetune = {"finetune": True} if self.finetune else {}
        languages = {"languages": self._tags} if self.languages else {}
        noise = {"noise": Noise(share=self.noise)} if self.noise else {}
        return {key: Named(name=name) for key, name in names.items() if name} | finetune | languages | noise

    def of(self, recipe: Recipe) -> Recipe:
        """Apply the replacements.

        Args:
            recipe: A recipe.

        Returns:
            The varied recipe.
        """
        return recipe.model_copy(update=self.replaced)

    def name(self, base: str) -> str:
        """Name the varied recipe.

        Args:
            base: The recipe's name.

        Returns:
            `vse2ad-gpo` if only the pooling of both sides changes, else for example `vse2ad_image_gpo_triplet`.
            Languages come last, and noise after them: `vse2ad-de-en`, `vse2ad-noise20`.
        """
        if self.pooling and self == Variation(pooling=self.pooling):
            return f"{base}-{self.pooling}"
        parts = (base, self.pooling, self.image_pooling and f"image_{self.image_pooling}",
                 self.text_pooling and f"text_{self.text_pooling}", self.objective, "finetuned" * self.finetune)
        noise = [f"noise{100 * self.noise:g}".replace(".", "_")] if self.noise else []
        return "-".join(("_".join(part for part in parts if part), *self._tags, *noise))


def named(recipe: Recipe, chosen: str | None, otherwise: str, shipped: Mapping[str, Recipe],
          taken: Iterable[str]) -> str:
    """Choose a recipe's name: that of the shipped recipe with equal settings, else the chosen one, else `otherwise`.

    Args:
        recipe: The recipe.
        chosen: The user's choice; None if there is none.
        otherwise: The name if nothing is chosen.
        shipped: The settings' recipes.
        taken: Names that are reserved for the shipped recipes.

    Returns:
        The name.

    Raises:
        InputError: If a shipped recipe would get another name, or another recipe a reserved one: its head would be
            mistaken for that recipe's.
    """
    name = chosen or otherwise
    same = [other for other, settings in shipped.items() if settings == recipe]
    if same and chosen and chosen not in same:
        raise InputError(f"this is the settings' recipe {same[0]!r} and keeps that name; leave out --name {chosen}")
    if same:
        return name if name in same else same[0]
    if name in taken:
        raise InputError(f"this recipe differs from the settings' {name!r}, and so must its head's name; choose one "
                         "with --name")
    return name

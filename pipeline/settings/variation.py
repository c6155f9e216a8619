"""A recipe that is varied on the command line, and the name that it then goes by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.errors import InputError
from pipeline.settings import Named, Recipe


@dataclass(frozen=True)
class Variation:
    """What replaces a recipe's own, by name and with default options; None leaves it.

    pooling: of both sides, or of the one that is not given by itself. image_pooling, text_pooling: of one. finetune:
    whether features are trained too. Raises InputError where all three poolings are given.
    """

    pooling: str | None = None
    image_pooling: str | None = None
    text_pooling: str | None = None
    objective: str | None = None
    finetune: bool = False

    def __post_init__(self) -> None:
        if self.pooling and self.image_pooling and self.text_pooling:
            raise InputError(f"the pooling {self.pooling} of both sides would do nothing where each side has its own; "
                             "leave it out")

    @property
    def replaced(self) -> dict[str, Any]:
        """A recipe's keys, and what they become."""
        names = {"image_pooling": self.image_pooling or self.pooling,
                 "text_pooling": self.text_pooling or self.pooling, "objective": self.objective}
        finetune = {"finetune": True} if self.finetune else {}
        return {key: Named(name=name) for key, name in names.items() if name} | finetune

    def of(self, recipe: Recipe) -> Recipe:
        """The recipe with the replacements."""
        return recipe.model_copy(update=self.replaced)

    def name(self, base: str) -> str:
        """What it is called: `vse2ad-gpo` with another pooling alone, else `vse2ad_image_gpo_triplet`."""
        if self.pooling and self == Variation(pooling=self.pooling):
            return f"{base}-{self.pooling}"
        parts = (base, self.pooling, self.image_pooling and f"image_{self.image_pooling}",
                 self.text_pooling and f"text_{self.text_pooling}", self.objective, "finetuned" * self.finetune)
        return "_".join(part for part in parts if part)


def named(recipe: Recipe, chosen: str | None, otherwise: str, shipped: Mapping[str, Recipe],
          taken: Iterable[str]) -> str:
    """The name that a recipe goes by: that of the shipped recipe which it is, else the chosen one, or `otherwise`.

    shipped: the settings' recipes, as they are there. taken: names that stand for those alone.

    Raises InputError where the recipe has a name and another is chosen, or where its name is taken by another recipe:
    its head would be mistaken for that one's.
    """
    name = chosen or otherwise
    same = [other for other, settings in shipped.items() if settings == recipe]
    if same and chosen and chosen not in same:
        raise InputError(f"this is the settings' recipe {same[0]!r}, and goes by that name; leave out --name {chosen}")
    if same:
        return name if name in same else same[0]
    if name in taken:
        raise InputError(f"this is another recipe than the settings' {name!r}, and its head would be mistaken for that "
                         "one's; give it a name of its own with --name")
    return name

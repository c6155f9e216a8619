"""Recipes that build on another one: `base: NAME`, and what differs from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.errors import InputError, unknown

LONGEST = 50
"""How many recipes may build on each other."""
SIDES = ("image_pooling", "text_pooling")


def resolve(recipes: Any) -> Any:
    """Complete every recipe in the settings' section `recipes`.

    A recipe takes over all keys of its base that it does not give itself. Keys are replaced as a whole, not merged.
    `pooling` stands for both `image_pooling` and `text_pooling`. Values that are not mappings are left for the
    settings' check.

    Args:
        recipes: The section as read from YAML.

    Returns:
        The section with complete recipes.

    Raises:
        InputError: For an unknown base, bases in a circle, or `pooling` together with one of those two.
    """
    if not isinstance(recipes, Mapping):
        return recipes
    return {name: _whole(name, recipes, ()) for name in recipes}


def _whole(name: str, recipes: Mapping[str, Any], above: tuple[str, ...]) -> Any:
    where = f"recipes.{above[-1]}.base" if above else f"recipes.{name}"
    if name not in recipes:
        raise InputError(f"{where}: {unknown('recipe', name, recipes)}")
    if len(above) > LONGEST:
        raise InputError(f"{where}: builds on more than {LONGEST} recipes, one on the other")
    if name in above:
        raise InputError(f"{where}: a circle, {' builds on '.join((*above, name))}; one of them must be whole")
    own = recipes[name]
    if not isinstance(own, Mapping):
        return own
    own = _both_sides(name, own)
    if "base" not in own:
        return own
    base = _whole(str(own.pop("base")), recipes, (*above, name))
    return {**base, **own} if isinstance(base, Mapping) else own


def _both_sides(name: str, recipe: Mapping[str, Any]) -> dict[str, Any]:
    own = dict(recipe)
    if "pooling" in own:
        if twice := [side for side in SIDES if side in own]:
            raise InputError(f"recipes.{name}: pooling stands for {' and '.join(SIDES)}; leave out {twice[0]}")
        pooling = own.pop("pooling")
        own |= dict.fromkeys(SIDES, pooling)
    return own

"""Recipes that build on another: `base: NAME`, and what differs from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.errors import InputError

SIDES = ("image_pooling", "text_pooling")


def resolve(recipes: Any) -> Any:
    """The settings' section `recipes` with every recipe whole.

    A recipe takes over all keys of its base that it does not give itself; a key is taken over or replaced as a whole.
    `pooling` stands for both `image_pooling` and `text_pooling`. What is no mapping is left for the settings' check.

    Raises InputError for a base that is not there, bases in a circle, or both `pooling` and one of those two.
    """
    if not isinstance(recipes, Mapping):
        return recipes
    return {name: _whole(name, recipes, ()) for name in recipes}


def _whole(name: str, recipes: Mapping[str, Any], above: tuple[str, ...]) -> Any:
    where = f"recipes.{above[-1]}.base" if above else f"recipes.{name}"
    if name not in recipes:
        raise InputError(f"{where}: there is no recipe {name!r}; there are: {', '.join(recipes)}")
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

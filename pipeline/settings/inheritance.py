"""Sections that build on another one: `base: NAME` and what differs from it, or a change to one of the same name."""

from collections.abc import Collection, Mapping
from typing import Any

from pipeline.parts.errors import InputError, unknown

LONGEST = 50
"""How many sections may build on each other."""
SIDES = ("image_pooling", "text_pooling")


def over(below: Mapping[str, Any], own: Mapping[str, Any], whole: Collection[str]) -> dict[str, Any]:
    """Lay sections over those of the same name; keys are replaced as a whole, not merged."""
    return {**below, **{name: _changed(below.get(name), section, whole) for name, section in own.items()}}


def _changed(below: Any, own: Any, whole: Collection[str]) -> Any:
    both = isinstance(below, Mapping) and isinstance(own, Mapping)
    return {**below, **own} if both and "base" not in own and not own.keys() >= set(whole) else own


def resolve(sections: Mapping[str, Any], path: str = "recipes", kind: str = "recipe") -> dict[str, Any]:
    """Complete every section: it takes over all keys of its base that it does not give itself."""
    found: dict[str, Any] = {}

    def complete(name: str, above: tuple[str, ...]) -> Any:
        where = f"{path}.{above[-1]}.base" if above else f"{path}.{name}"
        if name not in sections:
            raise InputError(f"{where}: {unknown(kind, name, sections)}")
        if len(above) > LONGEST:
            raise InputError(f"{where}: builds on more than {LONGEST} {kind}s, one on the other")
        if name in above:
            raise InputError(f"{where}: a circle, {' builds on '.join((*above, name))}; leave out one `base`")
        if name not in found:
            own = sections[name]
            if isinstance(own, Mapping) and "base" in own:
                base = complete(str(own["base"]), (*above, name))
                own = {**(base if isinstance(base, Mapping) else {}),
                       **{key: value for key, value in own.items() if key != "base"}}
            found[name] = own
        return found[name]

    for name in sections:
        complete(name, ())
    return found


def both_sides(recipes: Mapping[str, Any]) -> dict[str, Any]:
    """Give every recipe `image_pooling` and `text_pooling` for its `pooling`, which stands for both."""
    return {name: _of_both_sides(name, recipe) if isinstance(recipe, Mapping) else recipe
            for name, recipe in recipes.items()}


def _of_both_sides(name: str, recipe: Mapping[str, Any]) -> dict[str, Any]:
    own = dict(recipe)
    if "pooling" in own:
        if twice := [side for side in SIDES if side in own]:
            raise InputError(f"recipes.{name}: pooling stands for {' and '.join(SIDES)}; leave out {twice[0]}")
        own |= dict.fromkeys(SIDES, own.pop("pooling"))
    return own

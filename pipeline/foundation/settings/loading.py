"""Read `params.yaml` on top of the shipped settings and recipes, change single keys, and check the
result.
"""

import json
import re
from collections.abc import Collection, Mapping
from copy import deepcopy
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.foundation.files.parsing import from_json, from_yaml
from pipeline.foundation.parts import extension
from pipeline.foundation.parts.errors import InputError, refusing, unknown
from pipeline.foundation.parts.section import first_fault
from pipeline.foundation.settings import written
from pipeline.foundation.settings.recipe import FineTuning, Recipe, Training
from pipeline.foundation.settings.schema import DEFAULT_PRESET, Settings

# The folder of a project's own recipes, beside its settings file.
RECIPES = "manifests/recipes"
# How many sections may build on each other.
LONGEST = 50
SIDES = ("image_pooling", "text_pooling")
# The keys under which sections name a part, whose options are the other keys.
PART_KEYS = ("name", "engine")


def load(path: Path, changes: tuple[str, ...] = ()) -> Settings:
    """Read and check a settings file. What it leaves out has the value that ships.

    An incomplete recipe without a base takes the other keys from the shipped recipe of its name; so
    do a section of `training` and a feature of a preset. Recipes may also be files beside the
    settings, manifests/recipes/NAME.yaml. They are completed before `changes` are applied, so a
    change to one does not affect those that build on it.

    Args:
        path: The file.
        changes: `key.path=value` for each value to change; values are YAML.

    Returns:
        The settings.

    Raises:
        InputError: For a missing file, bad YAML, an unknown key, or a value of the wrong type.
    """
    user_settings = written.sections_of(path)
    in_files = _recipes(path.parent / RECIPES)
    try:
        shipped = _over(_shipped(), {"recipes": in_files})
        tree = _complete(_over(shipped, user_settings))
        settings = Settings.model_validate(from_json(json.dumps(tree)))
        if changes:
            # With all sections, each a copy of its own.
            tree = settings.model_dump(mode="json", by_alias=True)
            for change in sorted(changes, key=_depth):
                _change(tree, change)
            settings = Settings.model_validate(tree)
    except (ValidationError, InputError) as error:
        fault = first_fault(error, Settings)
        if fault.startswith("-S "):
            raise
        settings_file = _file_of(fault, path, in_files, user_settings)
        raise InputError(f"{settings_file}: {fault}") from None
    for dataset, preset in settings.presets.items():
        if preset not in settings.features:
            raise InputError(
                f"{path}: presets.{dataset}: {unknown('preset', preset, settings.features)}"
            )
    return settings


@cache
def _shipped() -> dict[str, Any]:
    recipes = _recipes(resources.files("manifests") / "recipes")
    sections = written.shipped() | {"recipes": both_sides(recipes)}
    for file in extension.files(written.SHIPPED.name):
        sections = _over(sections, written.yaml_of(file))
    return sections


@cache
def shipped_recipe(name: str) -> Recipe | None:
    """A recipe as it ships, whatever a project changes in it; None if none has that name."""
    recipes = resolve(_shipped()["recipes"])
    if name not in recipes:
        return None
    return Recipe.model_validate(from_json(json.dumps(recipes[name])))


def _recipes(folder: Traversable) -> dict[str, Any]:
    """The recipes in the files of a folder; none where there is no folder."""
    if not folder.is_dir():
        return {}
    recipes = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            recipes[file.name.removesuffix(".yaml")] = written.yaml_of(file)
    return recipes


def _over(below: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Lay given settings over those `below`. A section that is no mapping replaces the other; the
    check refuses it.
    """
    merged_sections = dict(below)
    for section_name, section in given.items():
        section_below = below.get(section_name)
        if section is None and isinstance(section_below, Mapping):
            continue  # all of its lines are comments
        if not isinstance(section_below, Mapping) or not isinstance(section, Mapping):
            merged_sections[section_name] = section
        elif section_name == "recipes":
            recipes = both_sides(section)
            merged_sections[section_name] = over(section_below, recipes, _needed(Recipe))
        elif section_name == "training":
            merged_sections[section_name] = over(section_below, section, _needed(Training))
        elif section_name == "finetuning":
            merged_sections[section_name] = over(section_below, section, _needed(FineTuning))
        elif section_name == "features":
            presets = dict(section_below)
            for preset, features in section.items():
                presets[preset] = features
                if isinstance(features, Mapping):
                    presets[preset] = over(section_below.get(preset, {}), features, ("engine",))
            merged_sections[section_name] = presets
        else:
            merged_sections[section_name] = {**section_below, **section}
    return merged_sections


def _needed(section: type[Recipe | Training | FineTuning]) -> list[str]:
    return [name for name, field in section.model_fields.items() if field.is_required()]


def _complete(tree: dict[str, Any]) -> dict[str, Any]:
    """Complete recipes and sections of training by their bases; a data set's section has its
    preset's as its base.
    """
    complete_tree = dict(tree)
    for name, kind in (("recipes", "recipe"), ("finetuning", "section of finetuning")):
        if isinstance(tree[name], Mapping):
            complete_tree[name] = resolve(tree[name], name, kind)
    training = tree["training"]
    presets = tree["presets"]
    if not isinstance(training, Mapping) or not isinstance(presets, Mapping):
        return complete_tree
    based = dict(training)
    for name, section in training.items():
        preset = presets.get(name, DEFAULT_PRESET)
        if preset == name or not isinstance(section, Mapping):
            continue
        if not section.keys() >= {*_needed(Training)}:
            based[name] = {"base": preset, **section}
    complete_tree["training"] = resolve(based, "training", "section of training")
    return complete_tree


def over(
    below: Mapping[str, Any], given: Mapping[str, Any], whole: Collection[str]
) -> dict[str, Any]:
    """Lay sections over those of the same name; keys are replaced as a whole, not merged."""
    merged = {**below, **given}
    for name, section in given.items():
        section_below = below.get(name)
        if not isinstance(section_below, Mapping) or not isinstance(section, Mapping):
            continue
        is_whole = section.keys() >= set(whole)
        if "base" not in section and not is_whole:
            merged[name] = {**section_below, **section}
    return merged


def resolve(
    sections: Mapping[str, Any], path: str = "recipes", kind: str = "recipe"
) -> dict[str, Any]:
    """Complete every section: it takes over all keys of its base that it does not give itself."""
    resolved: dict[str, Any] = {}

    def complete(name: str, above: tuple[str, ...]) -> Any:
        where = f"{path}.{name}"
        if above:
            where = f"{path}.{above[-1]}.base"
        if name not in sections:
            raise InputError(f"{where}: {unknown(kind, name, sections)}")
        if len(above) > LONGEST:
            raise InputError(
                f"{where}: `base` leads over more than {LONGEST} {kind}s; build on one of the first"
            )
        if name in above:
            raise InputError(
                f"{where}: {' builds on '.join((*above, name))}, in a circle; leave out one `base`"
            )
        if name not in resolved:
            section = sections[name]
            if isinstance(section, Mapping) and "base" in section:
                base = complete(str(section["base"]), (*above, name))
                if not isinstance(base, Mapping):
                    base = {}
                of_own = {key: value for key, value in section.items() if key != "base"}
                section = {**base, **of_own}
            resolved[name] = section
        return resolved[name]

    for name in sections:
        complete(name, ())
    return resolved


def both_sides(recipes: Mapping[str, Any]) -> dict[str, Any]:
    """Replace every recipe's `pooling`, which is for both sides, by `image_pooling` and
    `text_pooling`.
    """
    completed = dict(recipes)
    for name, recipe in recipes.items():
        if isinstance(recipe, Mapping) and "pooling" in recipe:
            sides_given = [side for side in SIDES if side in recipe]
            if sides_given:
                raise InputError(
                    f"recipes.{name}: pooling sets {' and '.join(SIDES)}; leave out {sides_given[0]}"
                )
            one_side = {key: value for key, value in recipe.items() if key != "pooling"}
            completed[name] = one_side | dict.fromkeys(SIDES, recipe["pooling"])
    return completed


def _file_of(
    fault: str, path: Path, in_files: Mapping[str, Any], of_user: Mapping[str, Any]
) -> Path:
    """The file with the fault: the settings file, or the recipe's own file if the settings do not
    give the key.
    """
    recipe_key = re.match(r"recipes\.([^.:]+)(?:\.(\w+))?", fault)
    if recipe_key is None or recipe_key[1] not in in_files:
        return path
    recipes = of_user.get("recipes")
    given_recipe = None
    if isinstance(recipes, Mapping):
        given_recipe = recipes.get(recipe_key[1])
    keys = {recipe_key[2]}
    if recipe_key[2] in SIDES:
        keys.add("pooling")
    if isinstance(given_recipe, Mapping) and keys & given_recipe.keys():
        return path
    return path.parent / RECIPES / f"{recipe_key[1]}.yaml"


def _depth(change: str) -> int:
    """How deep in the settings a change is. A part is chosen before its options are changed, in any
    order given.
    """
    keys = change.partition("=")[0].strip().split(".")
    return len(keys) - (keys[-1] in PART_KEYS)


def _change(tree: Any, change: str) -> None:
    path, equals, yaml_text = change.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise InputError(f"-S {change}: expected key.path=value")
    if keys[0] == "recipes" and keys[2:3] == ["pooling"]:
        for side in SIDES:  # for both of which it stands, as in the file
            of_side = ".".join(["recipes", keys[1], side, *keys[3:]])
            _change(tree, f"{of_side}={yaml_text}")
        return
    if keys[0] == "training" and len(keys) > 2:
        _own_training(tree, keys[1])
    section = tree
    for above, key, below in zip(["", *keys], keys[:-1], keys[1:], strict=False):
        if not isinstance(section, dict):
            raise InputError(f"-S {change}: {unknown('section', key, ())}")
        # A text encoder's options, or a feature, of which none are given yet.
        if above == "texts" or below == "engine":
            section.setdefault(key, {})
        if key not in section:
            raise InputError(f"-S {change}: {unknown('section', key, section)}")
        if section[key] is None:
            section[key] = {}
        section = section[key]
    if not isinstance(section, dict):
        raise InputError(f"-S {change}: {'.'.join(keys[:-1])} is not a section")
    with refusing(
        ValueError, lambda error: f"-S {change}: the value is not readable as YAML: {error}"
    ):
        new_setting = from_yaml(yaml_text)
    part_settings = section.get(keys[-1])
    if isinstance(new_setting, str) and isinstance(part_settings, dict):
        # A part's name alone; its options may follow.
        named_part = {key: new_setting for key in PART_KEYS if key in part_settings}
        if named_part:
            new_setting = named_part
            if named_part.items() <= part_settings.items():
                new_setting = part_settings
    if keys[-1] in PART_KEYS and section.get(keys[-1], new_setting) != new_setting:
        section.clear()  # the options of one part mean nothing to another
    section[keys[-1]] = new_setting


def _own_training(tree: Any, dataset: str) -> None:
    """Give a data set a copy of its preset's training section, where it has none of its own."""
    try:
        preset = tree["presets"].get(dataset, DEFAULT_PRESET)
        if dataset not in tree["training"]:
            tree["training"][dataset] = deepcopy(tree["training"][preset])
    except (KeyError, TypeError, AttributeError):
        return  # the check of all settings says what is wrong

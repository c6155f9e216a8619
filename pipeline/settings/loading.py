"""Read `params.yaml`, with changes of single keys, into checked settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.errors import InputError, unknown
from pipeline.files.parsing import from_json, from_yaml
from pipeline.settings import inheritance
from pipeline.settings.schema import DEFAULT_PRESET, Settings
from pipeline.settings.section import first_fault


def load(path: Path, changes: tuple[str, ...] = ()) -> Settings:
    """Read and check a settings file.

    Recipes are completed before a change is applied, so a change to one does not reach those that build on it.

    Args:
        path: The file.
        changes: `key.path=value` for each value to change; values are YAML.

    Returns:
        The settings.

    Raises:
        InputError: For a missing file, bad YAML, an unknown key, or a value of the wrong type.
    """
    try:
        tree = from_yaml(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path}: no such settings file; `pipeline init` writes one, or name another "
                         "with --params") from None
    except ValueError as error:
        raise InputError(f"{path}: not readable as YAML: {error}") from None
    if not isinstance(tree, dict):
        raise InputError(f"{path}: has no sections; `pipeline init` writes a settings file")
    if "recipes" in tree:
        tree["recipes"] = inheritance.resolve(tree["recipes"])
    tree = from_json(json.dumps(tree))  # what is shared becomes copies: a change is to one place
    for change in changes:
        _change(tree, change)
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        raise InputError(f"{path}: {first_fault(error)}") from None
    if fault := _fault(settings):
        raise InputError(f"{path}: {fault}")
    return settings


def _fault(settings: Settings) -> str | None:
    """Which sections contradict each other; None if all agree.

    A recipe need not be one of the settings': converted and varied heads bear names of their own, and are measured too.
    """
    for dataset, preset in settings.presets.items():
        if preset not in settings.features:
            return f"presets.{dataset}: {unknown('preset', preset, settings.features)}"
    return None


def _change(tree: Any, change: str) -> None:
    path, equals, text = change.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise InputError(f"-S {change}: expected key.path=value")
    if keys[0] == "recipes" and keys[2:3] == ["pooling"]:  # of both sides, as in the file
        for side in inheritance.SIDES:
            _change(tree, ".".join(["recipes", keys[1], side, *keys[3:]]) + f"={text}")
        return
    if keys[0] == "training" and len(keys) > 2:
        _own_training(tree, keys[1])
    node = tree
    for key in keys[:-1]:
        if not isinstance(node, dict) or key not in node:
            raise InputError(f"-S {change}: {unknown('section', key, node if isinstance(node, dict) else ())}")
        node = node[key]
    if not isinstance(node, dict):
        raise InputError(f"-S {change}: {'.'.join(keys[:-1])} is not a section")
    try:
        value = from_yaml(text)
    except ValueError as error:
        raise InputError(f"-S {change}: the value is not readable as YAML: {error}") from None
    if keys[0] == "features" and keys[-1] == "engine" and node.get("engine") != value:
        node.clear()  # the options of one engine mean nothing to another
    node[keys[-1]] = value


def _own_training(tree: Any, dataset: str) -> None:
    """Give a data set a copy of its preset's training section, where it has none of its own."""
    try:
        preset = tree["presets"].get(dataset, DEFAULT_PRESET)
        if dataset not in tree["training"]:
            tree["training"][dataset] = dict(tree["training"][preset])
    except (KeyError, TypeError, AttributeError):
        return  # the check of the whole says what is wrong

"""Engines: from an image to a set of items. A new one is a file with `Options` and a class, and a line in ENGINES."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pipeline.parts import lazy
from pipeline.parts.errors import InputError, refusing

if TYPE_CHECKING:
    from pipeline.features.extractors.base import Extractor, Items
    from pipeline.features.extractors.runtime import Runtime
    from pipeline.settings import Section

# Engine -> its class. `Options`, its settings, is a class in its module or in that class.
ENGINES: lazy.LookupTable[Callable[[Any, Runtime], Extractor]] = lazy.LookupTable({
    "pyramid": "pipeline.features.extractors.square:Pyramid",
    "butd-36": "pipeline.features.extractors.butd.detector:Detected",
    "butd-10-100": "pipeline.features.extractors.butd.detector:Detected",
    "butd-given": "pipeline.features.extractors.butd.detector:Given",
    "grid": "pipeline.features.extractors.square:Grid",
    "grid-feats-x101": "pipeline.features.extractors.grid_feats:GridFeats",
    "grid-feats-x152": "pipeline.features.extractors.grid_feats:GridFeats",
    "patch": "pipeline.features.extractors.square:Patch",
    "frame": "pipeline.features.extractors.square:Frame",
}, "extractors")

# Engine -> the defaults of options in which it differs from its class; settings may change them.
PRESETS: dict[str, dict[str, Any]] = {
    "butd-36": {"weights": "butd-36", "min_boxes": 36, "max_boxes": 36},
    "butd-10-100": {"weights": "butd-10-100", "min_boxes": 10, "max_boxes": 100},
    "grid-feats-x152": {"weights": "grid-feats-x152", "network": "resnext152_32x8d"},
}

DETECTRON2 = ("detectron2", "pip install --no-build-isolation 'git+https://github.com/facebookresearch/detectron2.git'")
# Engine -> the further package that it needs, and how to install that.
PACKAGES = dict.fromkeys(("butd-36", "butd-10-100", "butd-given"), DETECTRON2)


def check_options(engine: str, chosen: Mapping[str, Any]) -> Section:
    """Complete and check an engine's settings.

    Args:
        engine: A key of `ENGINES`.
        chosen: What the user gives; the rest are defaults.

    Returns:
        The engine's `Options`.

    Raises:
        InputError: For an unknown engine or option, or a value of another type.
    """
    from pydantic import ValidationError

    from pipeline.settings import first_fault

    if engine not in ENGINES:
        raise InputError(f"engine {engine!r}: expected one of {', '.join(ENGINES)}")
    kind: Any = ENGINES[engine]
    options = getattr(import_module(ENGINES.module(engine)), "Options", None) or kind.Options
    with refusing(ValidationError, lambda error: f"settings of the engine {engine}: {first_fault(error, options)}"):
        checked: Section = options.model_validate({**PRESETS.get(engine, {}), **chosen})
    return checked


def build(engine: str, options: Mapping[str, Any], runtime: Runtime) -> Extractor:
    """Load an engine with its weights.

    Args:
        engine: A key of `ENGINES`.
        options: Its settings; those that are not given are its defaults.
        runtime: Where the network runs.

    Returns:
        The engine.

    Raises:
        InputError: For an unknown engine or option, a runtime that is not available, or missing weights.
    """
    checked = check_options(engine, options)
    return ENGINES[engine](checked, runtime.checked())


def rebuild(made: Mapping[str, Any], device: str = "cpu", same_weights: bool = True) -> Extractor:
    """Load the engine that made some features, with the weights that are here now.

    It runs on torch, also where OpenVINO made the features: they differ by less than a store's rounding, and one image
    takes less time than compiling a graph.

    Args:
        made: The fingerprint of a store, or what a head records of it.
        device: A torch device.
        same_weights: Whether other weights are refused; their features could not be compared.

    Returns:
        The engine.

    Raises:
        InputError: If the features were imported, or the weights are others.
    """
    if "settings" not in made:
        raise InputError(f"the features {made.get('recipe')} were imported; the network that made them is not known "
                         "here")
    engine = build(made["engine"], made["settings"], import_module(f"{__name__}.runtime").Runtime(
        device, made["precision"]))
    if same_weights and engine.weights != made["weights"]:
        raise InputError(f"the features {made.get('recipe')} were made with other weights than the engine "
                         f"{made['engine']} loads now; extract them again")
    return engine


lazy.offer(__name__)

"""Engines: from an image to a set of items. A new one is a file with `Options` and a class, and a line in ENGINES."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pipeline import lazy
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.extractors.base import Extractor, Items
    from pipeline.extractors.runtime import Runtime

# Engine -> (module, class, the options that make this engine of it, which settings may change).
# The module is imported when the engine is used.
ENGINES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "pyramid": ("pipeline.extractors.pyramid", "Pyramid", {}),
    "butd-36": ("pipeline.extractors.butd.detected", "Detected",
                {"weights": "butd-36", "min_boxes": 36, "max_boxes": 36}),
    "butd-10-100": ("pipeline.extractors.butd.detected", "Detected",
                    {"weights": "butd-10-100", "min_boxes": 10, "max_boxes": 100}),
    "butd-given": ("pipeline.extractors.butd.given", "Given", {}),
    "grid": ("pipeline.extractors.grid", "Grid", {}),
    "patch": ("pipeline.extractors.patch", "Patch", {}),
}


def build(engine: str, options: Mapping[str, Any], runtime: Runtime) -> Extractor:
    """Load an engine with its weights.

    Args:
        engine: A key of `ENGINES`.
        options: The engine's own settings; those not given have their defaults.
        runtime: Where and how its network runs.

    Returns:
        The engine.

    Raises:
        InputError: For an unknown engine or option, or missing weights.
    """
    from pydantic import ValidationError

    from pipeline.settings import first_fault

    if engine not in ENGINES:
        raise InputError(f"engine {engine!r}: expected one of {', '.join(ENGINES)}")
    runtime = runtime.checked()
    module_name, class_name, preset = ENGINES[engine]
    module = import_module(module_name)
    try:
        checked = module.Options.model_validate({**preset, **options})
    except ValidationError as error:
        raise InputError(f"settings of the engine {engine}: {first_fault(error)}") from None
    extractor: Extractor = getattr(module, class_name)(checked, runtime)
    return extractor


__all__ = ["ENGINES", "Extractor", "Items", "Runtime", "build"]

lazy.offer(__name__)

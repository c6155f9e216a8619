"""Engines: from an image to a set of items. A new one is a file, its options in options.py, and a
line in ENGINES.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pipeline.foundation.parts import lazy
from pipeline.foundation.parts.errors import InputError

if TYPE_CHECKING:
    from pipeline.make.features.extractors.base import Extractor
    from pipeline.make.features.extractors.items import Items
    from pipeline.make.features.extractors.runtime import Runtime
    from pipeline.make.features.store import ItemFormat

lazy.imports(__name__)

ENGINES: lazy.LookupTable[Callable[..., Extractor]] = lazy.LookupTable(
    {
        "pyramid": "pipeline.make.features.extractors.square:Pyramid",
        "butd-36": "pipeline.make.features.extractors.butd.detector:Detected",
        "butd-10-100": "pipeline.make.features.extractors.butd.detector:Detected10To100",
        "butd-given": "pipeline.make.features.extractors.butd.detector:Given",
        "grid": "pipeline.make.features.extractors.square:Grid",
        "grid-feats-x101": "pipeline.make.features.extractors.grid_feats:GridFeats",
        "grid-feats-x152": "pipeline.make.features.extractors.grid_feats:GridFeatsX152",
        "patch": "pipeline.make.features.extractors.square:Patch",
        "frame": "pipeline.make.features.extractors.square:Frame",
        "text-tower": "pipeline.make.features.extractors.text_tower:CaptionTokens",
    },
    "extractors",
    "engine",
)


def build(engine: str, options: Mapping[str, Any], runtime: Runtime) -> Extractor:
    """Load an engine, a key of `ENGINES`, with its weights on a runtime; options not given are its
    defaults.
    """
    ENGINES.options(engine, options)  # before the runtime, which imports torch
    return ENGINES.build(engine, runtime.checked(), **options)


def rebuild(how: ItemFormat, device: str = "cpu", same_weights: bool = True) -> Extractor:
    """Load the engine that made some features on a device, with the weights that this machine has.

    It runs on torch, also where OpenVINO made the features: they differ by less than a store's
    rounding, and one image takes less time than compiling a graph. how: as a store or a head
    records it. same_weights: whether others are refused.

    Raises:
        InputError: If the features were imported, or the weights are others.
    """
    made = how.made
    recipe = made.get("recipe")
    if "settings" not in made:
        raise InputError(
            f"the features {recipe} were imported; the network that made them is not known here"
        )
    runtime = import_module(f"{__name__}.runtime").Runtime(device, made["precision"])
    name = made["engine"]
    engine = build(name, how.options, runtime)
    if same_weights and engine.weights != made["weights"]:
        raise InputError(
            f"the features {recipe} were made with other weights than the engine {name} loads now; "
            "extract them again"
        )
    return engine

"""What an extraction needs, known before anything is computed and without loading a network.

Packages and checkpoints that this machine lacks; and for the shipped presets the time, memory and
disk that they take, from measurements rather than a probe.
"""

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pipeline.foundation.files import weights
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.schema import DEFAULT_PRESET
from pipeline.make.features.extractors import ENGINES

Lack = tuple[str, str]  # a feature, and what it lacks and where to get that, in one line


def missing(settings: Settings, dataset: str, features: Iterable[str]) -> list[Lack]:
    """The packages and checkpoints that a data set's features need and this machine lacks, in the
    features' order.
    """
    lacking = []
    for feature in features:
        engine = settings.engine_of(dataset, feature)
        for what in lacks(engine.engine, engine.options):
            lacking.append((feature, what))
    return lacking


def lacks(engine: str, options: Mapping[str, Any]) -> list[str]:
    """Find what one engine needs and this machine lacks: a line for each thing, with where to get
    it.
    """
    chosen = ENGINES.options(engine, options)
    lacking = []
    packages: Mapping[str, str] = getattr(chosen, "PACKAGES", {})
    for name, command in packages.items():
        if find_spec(name) is None:
            lacking.append(f"the package {name}; with torch installed, run: {command}")
    lack = unnamed(engine, options)
    if lack:
        lacking.append(lack)
    chosen_weights = getattr(chosen, "weights", None)
    if chosen_weights not in (None, weights.UNTRAINED):
        try:
            weights.require(str(chosen_weights))
        except InputError as error:
            lacking.append(str(error))
    return lacking


def unnamed(engine: str, options: Mapping[str, Any]) -> str:
    """What the settings must name before an engine can extract anything, in one line; "" for
    nothing.
    """
    return str(getattr(ENGINES.options(engine, options), "unnamed", ""))


def refuse(lacking: list[Lack], dataset: str, preset: str, notes: Iterable[str] = ()) -> None:
    """Raise an InputError that names all that is missing."""
    if not lacking:
        return
    numbered = []
    for number, (feature, what) in enumerate(lacking, 1):
        numbered.append(f"({number}) {feature}: {what.rstrip('.;')}")
    said = "; ".join(numbered)
    for note in notes:
        said += f". It would also take {note}"
    if not said.endswith("?"):
        said += "."
    other_preset = ""
    if preset != DEFAULT_PRESET:
        other_preset = f"take the preset `{DEFAULT_PRESET}` (presets.{dataset}), "
    raise InputError(
        f"features of {dataset} cannot be extracted here: {said} Or leave the feature out "
        f"of run.features, {other_preset}or import features that others extracted (pipeline store "
        "import). manifests/weights.yaml has licences and training data"
    )


DAY = 86400.0


@dataclass(frozen=True)
class Cost:
    """The cost of an engine."""

    # It was measured on one core in batches of 16 images of 640 x 480 pixels, or on clips of 20
    # frames of 320 x 240.

    openvino: float  # CPU seconds per image with OpenVINO
    torch: float  # CPU seconds per image with torch
    memory: float  # GB of a process
    numbers: int  # numbers per image in the store


RESNET = "resnet152.tv_in1k"
EFFICIENT = "tf_efficientnet_lite0"
VIT = "vit_base_patch16_224.orig_in21k_ft_in1k"
# Engine, network and image size -> cost.
MEASURED = {
    ("butd-36", None, None): Cost(10.0, 15.0, 2.1, 36 * 2048),
    ("grid", "butd_resnet101", 512): Cost(0.42, 0.72, 2.2, 256 * 2048),
    ("patch", VIT, 224): Cost(0.19, 0.42, 1.8, 197 * 768),
    ("pyramid", EFFICIENT, 384): Cost(0.02, 0.11, 1.6, 36 * 1280),
    ("grid", EFFICIENT, 512): Cost(0.04, 0.18, 2.1, 64 * 1280),
    ("frame", EFFICIENT, 224): Cost(0.2, 0.5, 1.5, 20 * 1280),
    ("frame", RESNET, 224): Cost(2.3, 3.0, 2.5, 20 * 2048),
}


def cost_of(engine: str, options: Mapping[str, Any]) -> Cost | None:
    """The measured cost of an engine with its options; None where it was not measured."""
    return MEASURED.get((engine, options.get("network"), options.get("image_size")))


def costs(
    engine: str,
    options: Mapping[str, Any],
    images: int,
    *,
    on_cpu: bool,
    openvino: bool,
    workers: int,
    width: int,
    store: Path,
) -> list[str]:
    """Say what an extraction will take that may be more than a user expects or a machine has."""
    cost = cost_of(engine, options)
    if cost is None:
        return []
    notes = []
    cores = len(os.sched_getaffinity(0))
    seconds = cost.openvino if openvino else cost.torch
    days = seconds * images / cores / DAY
    if on_cpu and days > 1:
        notes.append(
            f"about {days:,.0f} days on {cores} CPU cores; extract.device: cuda takes a GPU, --scheduler a "
            "cluster"
        )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    of_workers = cost.memory * workers
    if on_cpu and of_workers > memory:
        notes.append(
            f"about {of_workers:.0f} GB of memory, of {memory:.0f}; fewer workers or a smaller "
            "extract.batch_size take less"
        )
    size = cost.numbers * width * images
    free = free_bytes(store)
    if size > free:
        notes.append(
            f"{size_of(size)} of disk below {store.parent}, of {size_of(free)} that are free; --root or "
            "--out puts them elsewhere"
        )
    return notes


def size_of(count: int) -> str:
    """A number of bytes: "27.84 MB"."""
    if count >= 1e8:
        return f"{count / 1e9:,.2f} GB"
    return f"{count / 1e6:,.2f} MB"


def free_bytes(store: Path) -> int:
    """How many bytes are free where a store goes."""
    folder = store.absolute()
    while not folder.exists():
        folder = folder.parent
    with refusing(OSError, lambda error: f"{folder}: {error.strerror}"):
        return shutil.disk_usage(folder).free

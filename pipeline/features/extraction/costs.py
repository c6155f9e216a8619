"""What the shipped presets cost on a CPU: time, memory and disk, from measurements rather than a probe."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DAY = 86400.0


@dataclass(frozen=True)
class Cost:
    """The cost of an engine.

    It was measured on one core in batches of 16 images of 640 x 480 pixels, or on clips of 20 frames of 320 x 240.
    """

    openvino: float  # CPU seconds an image by OpenVINO
    torch: float  # CPU seconds an image by torch
    memory: float  # GB of a process
    numbers: int  # numbers that an image has in the store


MEASURED = {
    ("butd-36", None, None): Cost(10.0, 15.0, 2.1, 36 * 2048),
    ("grid", "butd_resnet101", 512): Cost(0.42, 0.72, 2.2, 256 * 2048),
    ("patch", "vit_base_patch16_224.orig_in21k_ft_in1k", 224): Cost(0.19, 0.42, 1.8, 197 * 768),
    ("pyramid", "tf_efficientnet_lite0", 384): Cost(0.02, 0.11, 1.6, 36 * 1280),
    ("grid", "tf_efficientnet_lite0", 512): Cost(0.04, 0.18, 2.1, 64 * 1280),
    ("frame", "tf_efficientnet_lite0", 224): Cost(0.2, 0.5, 1.5, 20 * 1280),
    ("frame", "resnet152.tv_in1k", 224): Cost(2.3, 3.0, 2.5, 20 * 2048),
}
"""Engine, network and image size -> cost."""


def notes(engine: str, options: Mapping[str, Any], images: int, *, on_cpu: bool, openvino: bool, workers: int,
          width: int, store: Path) -> list[str]:
    """Say what an extraction will take that may be more than a user expects or a machine has.

    It gives a line each for days of CPU, too little memory and too little disk; none for engines that were not
    measured.
    """
    cost = MEASURED.get((engine, options.get("network"), options.get("image_size")))
    if cost is None:
        return []
    found, cores = [], len(os.sched_getaffinity(0))
    days = (cost.openvino if openvino else cost.torch) * images / cores / DAY
    if on_cpu and days > 1:
        found.append(f"about {days:,.0f} days on {cores} CPU cores; extract.device: cuda takes a GPU, --scheduler a "
                     "cluster")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    if on_cpu and cost.memory * workers > memory:
        found.append(f"about {cost.memory * workers:.0f} GB of memory, of {memory:.0f}; fewer workers or a smaller "
                     "extract.batch_size take less")
    size, free = cost.numbers * width * images / 1e9, _free(store) / 1e9
    if size > free:
        found.append(f"{size:,.0f} GB of disk below {store.parent}, of {free:,.0f} that are free; --root or --out puts "
                     "them elsewhere")
    return found


def _free(store: Path) -> int:
    folder = store.absolute()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free

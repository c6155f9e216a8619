"""Where an extraction's time goes: decode, resize, forward and write, apart, in CPU time an image.

Photographs are JPEGs of 640 x 480 pixels: scenes of the sample, or those of a folder.

    python -m benchmarks.extraction_parts [--images FOLDER]
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchmarks import numbers
from pipeline.foundation.files import images
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest import sample
from pipeline.make.features import extractors
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.store import Shard, StoreLayout, Wanted, making, plan, write_shard
from pipeline.make.features.store.layout import DONE

SIZE = (640, 480)
BATCH, SHARD = 16, 128
CNN = {"network": "tf_efficientnet_lite0", "weights": "efficientnet-lite0"}
FEATURES: dict[str, tuple[str, dict[str, Any]]] = {
    "region, 36 windows at 384 px": ("pyramid", {**CNN, "image_size": 384}),
    "grid, 8 x 8 at 512 px": ("grid", {**CNN, "grid": 8}),
    "patch, ViT-Tiny at 224 px": (
        "patch",
        {"network": "vit_tiny_patch16_224", "weights": "untrained"},
    ),
    "grid, 16 x 16 of BUTD's CNN": ("grid", {"network": "butd_resnet101", "weights": "untrained"}),
}


def photographs(folder: Path | None, count: int) -> list[bytes]:
    """So many JPEGs of 640 x 480."""
    with tempfile.TemporaryDirectory() as temporary:
        if folder is None:
            folder = (
                sample.render(Path(temporary, "sample"), images=count, size=480, seed=0).parent
                / "images"
            )
        files = sorted(
            file for file in folder.iterdir() if file.suffix.lower() in (".jpg", ".jpeg", ".png")
        )[:count]
        return [jpeg(images.decode(file)) for file in files]


def jpeg(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.resize(SIZE, Image.Resampling.BICUBIC).save(stream, "JPEG", quality=90)
    return stream.getvalue()


def least(work: Callable[[], Any], repeats: int) -> float:
    """The least CPU time of several times, in seconds, after one to warm up."""
    taken = []
    for _ in range(repeats + 1):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return min(taken[1:])


def parts(engine: Any, files: list[bytes], folder: Path, repeats: int) -> dict[str, float]:
    """Milliseconds of CPU time an image."""
    decoded = [images.decode(Path("photograph.jpg"), content) for content in files]
    prepared = [engine.prepare(image) for image in decoded]
    sizes = [image.size for image in decoded]

    def forward() -> list[Any]:
        return [
            items
            for start in range(0, len(prepared), BATCH)
            for items in engine.extract(
                prepared[start : start + BATCH], sizes[start : start + BATCH]
            )
        ]

    found = forward()
    features = [
        np.clip(items.features, -6e4, 6e4) for items in found
    ]  # an untrained network may leave float16
    layout = StoreLayout(SHARD, engine.items, engine.dimension, SHARD, extras=dict(engine.extras))
    wanted = Wanted(np.arange(SHARD), np.zeros(SHARD, np.int64), {}, layout)
    with making(folder / "s.zarr", wanted, plan(folder / "s.zarr", wanted)):
        pass

    def write() -> None:
        shard = Shard.empty(layout, 0)
        for row in shard.rows:
            which = row % len(found)
            shard.fill(row, features[which], sizes[which], found[which].extras)
        assert (shard.arrays["status"] == DONE).all()
        write_shard(folder / "s.zarr", layout, shard, digest({}))

    steps = {
        "decode": lambda: [images.decode(Path("photograph.jpg"), content) for content in files],
        "resize": lambda: [engine.prepare(image) for image in decoded],
        "forward": forward,
        "write": write,
    }
    return {
        name: 1000 * least(step, repeats) / (SHARD if name == "write" else len(files))
        for name, step in steps.items()
    }


def main(folder: Path | None = None, count: int = 32, repeats: int = 3) -> None:
    torch.set_num_threads(1)
    files = photographs(folder, count)
    size = sum(map(len, files)) / len(files) / 1000
    print(
        f"{len(files)} JPEGs of {SIZE[0]} x {SIZE[1]}, {size:.0f} kB each; CPU ms an image on one thread"
    )
    print(f"{'':30} {'decode':>8} {'resize':>8} {'forward':>8} {'write':>8} {'forward is':>11}")
    rows = []
    for title, (name, options) in FEATURES.items():
        for backend in ("openvino", "torch"):
            engine = extractors.build(name, options, Runtime(backend=backend))
            with tempfile.TemporaryDirectory() as temporary:
                took = parts(engine, files, Path(temporary), repeats)
            print(
                f"{title:30} "
                + " ".join(f"{taken:8.2f}" for taken in took.values())
                + f" {took['forward'] / sum(took.values()):11.2f} of it, {backend}",
                flush=True,
            )
            rows.append([title, backend, *took.values(), took["forward"] / sum(took.values())])
    columns = [(step, ".2f") for step in ("decode", "resize", "forward", "write", "forward of all")]
    numbers.keep("extraction_parts", [("CPU ms an image", ""), ("backend", ""), *columns], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path)
    parser.add_argument("--count", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    main(given.images, given.count, given.repeats)

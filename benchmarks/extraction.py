"""Extraction against bare forward loops of the same network; lower precision; two workers against one. All in one run.

python -m benchmarks.extraction            # grid at 512 px by EfficientNet-Lite0, and ViT-B/16 at 224 px
"""

from __future__ import annotations

import argparse
import copy
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import least_times
from pipeline import extraction, manifest, sample
from pipeline.extraction import cluster, worker
from pipeline.extractors import Runtime
from pipeline.extractors.network import Network
from pipeline.files import images
from pipeline.manifest import Manifest

BATCH = 16
GRID: tuple[str, dict[str, Any]] = ("grid", {"network": "tf_efficientnet_lite0", "weights": "efficientnet-lite0"})
PATCH: tuple[str, dict[str, Any]] = ("patch", {"network": "vit_base_patch16_224", "weights": "untrained"})


def job(scenes: Manifest, store: Path, engine: tuple[str, dict[str, Any]], precision: str = "fp32") -> extraction.Job:
    made = extraction.Engine.of(*engine, Runtime(precision=precision))
    return extraction.Job(scenes, scenes.images_folder, store, made, BATCH, shard_images=2 * BATCH)


def pixels(scenes: Manifest, network: Network, size: int) -> list[torch.Tensor]:
    """All images decoded and normalised before the clock starts: batches of float32 [BATCH, 3, size, size]."""
    decoded = [images.decode(scenes.images_folder / file) for file in scenes.images["file"]]
    stacked = torch.stack([network.prepare(image, size) for image in decoded]).permute(0, 3, 1, 2)
    normal = (stacked.float() - network._mean) / network._std
    return list(normal.contiguous(memory_format=torch.channels_last).split(BATCH))


@torch.inference_mode()
def forward(model: Any, batches: list[torch.Tensor], precision: torch.dtype = torch.float32) -> torch.Tensor:
    """The bare loop. Returns the last batch's map or tokens."""
    with torch.autocast("cpu", precision, enabled=precision != torch.float32):
        for batch in batches:
            last: torch.Tensor = model.forward_features(batch)
    return last.float()


def against_bare_loop(scenes: Manifest, folder: Path, engine: tuple[str, dict[str, Any]], size: int,
                      repeats: int) -> None:
    """Extraction, from files to a store that is on disk, against the loop over preloaded tensors."""
    made = job(scenes, folder / "feature.zarr", engine)
    network: Network = worker.load(made.engine).network  # type: ignore[attr-defined]
    batches = pixels(scenes, network, size)
    count = 0

    def extract() -> None:
        nonlocal count
        count += 1
        extraction.extract(job(scenes, folder / f"{engine[0]}{count}.zarr", engine))

    whole, bare = least_times(extract, lambda: forward(network.model, batches), repeats)
    print(f"{engine[1]['network']:24} {size} px  extraction {len(scenes.images) / whole:6.2f} images/s, bare loop "
          f"{len(scenes.images) / bare:6.2f}: {bare / whole:.2f} of it", flush=True)


def against_usual_loop(scenes: Manifest, folder: Path, engine: tuple[str, dict[str, Any]], size: int,
                       repeats: int) -> None:
    """Bare loops: channels last, and bf16, against fp32 with the channels before the pixels, the usual way."""
    network: Network = worker.load(job(scenes, folder, engine).engine).network  # type: ignore[attr-defined]
    batches = pixels(scenes, network, size)[:2]
    contiguous = copy.deepcopy(network.model).to(memory_format=torch.contiguous_format)
    plain = [batch.contiguous() for batch in batches]
    for name, model, given, dtype in (("channels last", network.model, batches, torch.float32),
                                      ("bf16", network.model, batches, torch.bfloat16)):
        faster, usual = least_times(lambda m=model, g=given, d=dtype: forward(m, g, d),  # type: ignore[misc]
                                    lambda: forward(contiguous, plain), repeats)
        expected, got = forward(contiguous, plain[-1:]), forward(model, given[-1:], dtype)
        difference = float((got - expected).norm() / expected.norm())
        print(f"{'':24} {name} {usual / faster:.2f} times faster than contiguous fp32, features differ by "
              f"{difference:.1e} of their norm", flush=True)


def seconds(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def two_workers(scenes: Manifest, folder: Path) -> None:
    """Two workers of one thread each, against one; their networks are loaded before the clock starts."""
    taken = {}
    for count in (1, 2):
        # A shard a batch: as many for the one as for the other.
        made = replace(job(scenes, folder / f"{count}-workers.zarr", GRID), shard_images=BATCH)
        with cluster.local(count, threads=1) as workers:
            workers.client.run(worker.describe, made.engine)
            taken[count] = seconds(lambda m=made, w=workers: extraction.extract(m, w))  # type: ignore[misc]
    print(f"{'two workers':24} {taken[1] / taken[2]:.2f} times as fast as one worker with one thread", flush=True)


def main(count: int = 64, repeats: int = 3) -> None:
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        sample.render(folder / "sample", images=count, size=512, seed=0)
        scenes = manifest.build("sample", folder / "sample" / "images", folder / "sample" / "dataset_sample.json")
        against_bare_loop(scenes, folder, GRID, 512, repeats)
        against_usual_loop(scenes, folder, GRID, 512, repeats)
        against_bare_loop(scenes, folder, PATCH, 224, repeats)
        against_usual_loop(scenes, folder, PATCH, 224, repeats)
        two_workers(scenes, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    main(given.images, given.repeats)

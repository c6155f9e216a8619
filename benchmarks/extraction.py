"""Extraction, from photographs to a store on disk, against the bare loop that one would write; all
in one run.

The bare loop is torch's forward pass in float32 with channels before pixels, over tensors that are
decoded, resized and normalised before the clock starts; nothing is written.

    python -m benchmarks.extraction  # grid at 512 px by EfficientNet-Lite0, and ViT-B/16 at 224 px
"""

from __future__ import annotations

import argparse
import copy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks import numbers
from benchmarks.extraction_parts import jpeg
from benchmarks.measure import least_times, precisions, refuse_standard_input
from pipeline.foundation import manifest
from pipeline.foundation.compute import cluster
from pipeline.foundation.files import images
from pipeline.foundation.manifest import Manifest, sample
from pipeline.make.features import extraction
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.extractors.network import Network

BATCH = 16
EFFICIENTNET = {"network": "tf_efficientnet_lite0", "weights": "efficientnet-lite0"}
GRID: tuple[str, dict[str, Any]] = ("grid", {**EFFICIENTNET, "grid": 8})
PATCH: tuple[str, dict[str, Any]] = (
    "patch",
    {"network": "vit_base_patch16_224", "weights": "untrained"},
)
PARAMS = Path(__file__).parents[1] / "params.yaml"


def job(
    scenes: Manifest,
    store: Path,
    engine: tuple[str, dict[str, Any]],
    runtime: Runtime,
    batch: int = BATCH,
) -> extraction.ExtractionJob:
    """An extraction of all scenes, two batches a shard."""
    return extraction.ExtractionJob(
        scenes,
        scenes.images_folder,
        store,
        extraction.EngineSpec(*engine, runtime),
        batch,
        shard_images=2 * batch,
    )


def pixels(scenes: Manifest, network: Network, size: int, batch: int = BATCH) -> list[torch.Tensor]:
    """All images decoded, resized and normalised: batches of float32 [batch, 3, size, size],
    channels last.
    """
    decoded = [images.decode(scenes.images_folder / file) for file in scenes.images["file"]]
    stacked = torch.stack([network.prepare(image, size) for image in decoded]).permute(0, 3, 1, 2)
    normal = (stacked.float() - network._mean) / network._std
    return list(normal.contiguous(memory_format=torch.channels_last).split(batch))


@torch.inference_mode()
def forward(
    model: Any, batches: list[torch.Tensor], precision: torch.dtype = torch.float32
) -> torch.Tensor:
    """The bare loop. Returns the last batch's map or tokens."""
    with torch.autocast("cpu", precision, enabled=precision != torch.float32):
        for batch in batches:
            last: torch.Tensor = model.forward_features(batch)
    return last.float()


class Bare:
    """The bare loop of an engine's network, its channels before the pixels."""

    def __init__(self, scenes: Manifest, engine: tuple[str, dict[str, Any]], size: int) -> None:
        self.network = Network(engine[1]["network"], engine[1]["weights"], Runtime())
        self.batches = pixels(scenes, self.network, size)
        self.contiguous = copy.deepcopy(self.network.model).to(
            memory_format=torch.contiguous_format
        )
        self.plain = [batch.contiguous() for batch in self.batches]

    def __call__(self) -> torch.Tensor:
        return forward(self.contiguous, self.plain)


def against_bare_loop(
    scenes: Manifest, folder: Path, engine: tuple[str, dict[str, Any]], bare: Bare, repeats: int
) -> dict[str, float]:
    """Images a second by each backend; networks are loaded, and graphs compiled, before the clock
    starts.
    """
    rates = {"bare loop": 0.0}
    for backend in ("openvino", "torch"):
        jobs = (
            job(
                scenes,
                folder / f"{engine[0]}-{backend}{run}.zarr",
                engine,
                Runtime(backend=backend),
            )
            for run in range(repeats + 1)
        )
        whole, alone = least_times(lambda jobs=jobs: extraction.extract(next(jobs)), bare, repeats)  # type: ignore[misc]
        count = len(scenes.images)
        print(
            f"{engine[1]['network']:24} {backend:8} {count / whole:6.2f} images/s, bare loop {count / alone:6.2f}: "
            f"{alone / whole:.2f} times as fast",
            flush=True,
        )
        rates |= {
            f"extraction, {backend}": count / whole,
            "bare loop": max(rates["bare loop"], count / alone),
        }
    return rates


def lower_precision(bare: Bare, repeats: int) -> dict[str, float]:
    """Images a second of bare loops: channels last, and bf16 where it is faster, against the bare
    loop.
    """
    rates = {}
    few, kinds = (
        bare.batches[:2],
        {"fp32": ("channels last", torch.float32), "bf16": ("bf16", torch.bfloat16)},
    )
    for name, dtype in (kinds[precision] for precision in precisions("cpu")):
        faster, usual = least_times(
            lambda d=dtype: forward(bare.network.model, few, d),  # type: ignore[misc]
            lambda: forward(bare.contiguous, bare.plain[:2]),
            repeats,
        )
        rates[f"bare loop, {name}"] = sum(map(len, few)) / faster
        expected, got = (
            forward(bare.contiguous, bare.plain[1:2]),
            forward(bare.network.model, few[1:], dtype),
        )
        difference = float((got - expected).norm() / expected.norm())
        print(
            f"{'':24} {name} {usual / faster:.2f} times as fast as the bare loop, features differ by "
            f"{difference:.1e} of their norm",
            flush=True,
        )
    return rates


def command(scenes: Manifest, folder: Path, bare: Bare, name: str = "sample") -> dict[str, float]:
    """`pipeline extract` as a user types it, from its start to its end, against the bare loop's
    time for as many.
    """
    scenes.save(folder / "data" / f"{name}.parquet")
    words = [
        sys.executable,
        "-c",
        "from stages.cli import main; main()",
        "extract",
        "--feature",
        "grid",
        "--dataset",
        name,
        "--root",
        folder,
        "--params",
        PARAMS,
        "--backend",
        "openvino",
    ]
    whole = seconds(lambda: subprocess.run(list(map(str, words)), check=True, capture_output=True))
    alone = seconds(bare)
    each = alone / (len(bare.plain) * BATCH)
    print(
        f"{'pipeline extract':24} {len(scenes.images)} images in {whole:.1f} s from its start: "
        f"{each * len(scenes.images) / whole:.2f} times as fast as the bare loop",
        flush=True,
    )
    return {"extraction, openvino": len(scenes.images) / whole}


WAYS = ("extraction, openvino", "extraction, torch", "bare loop, channels last", "bare loop, bf16")


def row(title: str, rates: dict[str, float]) -> list[Any]:
    """Images a second of each way, with its ratio to the bare loop, and the bare loop's."""
    bare = rates["bare loop"]
    return [
        title,
        *([rates[way], rates[way] / bare] if way in rates else None for way in WAYS),
        bare,
    ]


def seconds(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def two_workers(scenes: Manifest, folder: Path) -> None:
    """Two workers of one thread each, against one; their networks are loaded before the clock
    starts.
    """
    taken = {}
    for count in (1, 2):
        # A shard a batch: as many for the one as for the other.
        made = replace(
            job(scenes, folder / f"{count}-workers.zarr", GRID, Runtime(backend="openvino")),
            shard_images=BATCH,
        )
        with cluster.local(count, threads=1) as workers:
            extraction.extract(replace(made, store=folder / f"{count}-warm.zarr"), workers)
            taken[count] = seconds(lambda m=made, w=workers: extraction.extract(m, w))  # type: ignore[misc]
    print(
        f"{'two workers':24} {taken[1] / taken[2]:.2f} times as fast as one worker with one thread",
        flush=True,
    )


def rendered(folder: Path, count: int) -> Manifest:
    """So many scenes as JPEGs of 640 x 480 pixels, a camera's shape, which every engine resizes."""
    sample.render(folder / "sample", images=count, size=480, seed=0)
    for file in (folder / "sample" / "images").iterdir():
        file.write_bytes(jpeg(images.decode(file)))
    return manifest.build(
        "sample", folder / "sample" / "images", folder / "sample" / "dataset_sample.json"
    )


def main(count: int = 64, repeats: int = 3, whole: int = 600) -> None:
    refuse_standard_input()
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        scenes = rendered(folder, count)
        bare = Bare(scenes, GRID, 512)
        rates = against_bare_loop(scenes, folder, GRID, bare, repeats)
        rows = [
            row("EfficientNet-Lite0, grid 8 × 8 at 512 px", rates | lower_precision(bare, repeats)),
            row(
                f"`pipeline extract` of {whole}, from its start to its end",
                {"bare loop": rates["bare loop"]}
                | command(rendered(folder / "many", whole), folder / "many", bare),
            ),
        ]
        del bare
        bare = Bare(scenes, PATCH, 224)
        rates = against_bare_loop(scenes, folder, PATCH, bare, repeats)
        rows.append(row("ViT-B/16, 224 px", rates | lower_precision(bare, repeats)))
        numbers.keep(
            "extraction",
            [
                ("images /s (ratio to the bare loop)", ""),
                *((way, ".1f") for way in (*WAYS, "bare loop")),
            ],
            rows,
        )
        two_workers(scenes, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--whole", type=int, default=600, help="images for the command as a whole")
    given = parser.parse_args()
    main(given.images, given.repeats, given.whole)

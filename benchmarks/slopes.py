"""How work on images grows with their number, on tiny features: at a slope of 1 ten times the images take ten times as
long. Exits 1 if a step's slope is above 1.15.

python -m benchmarks.slopes
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.features import extraction
from pipeline.features.extraction.extraction_job import EngineDescription
from pipeline.features.extractors import Runtime
from pipeline.features.store import FeatureStore, Shard, making, plan, verify, write_shard
from pipeline.features.store.layout import DONE
from pipeline.features.store.rewrite import rewrite
from pipeline.files.digest import digest
from pipeline.manifest import Manifest
from pipeline.studies.audit import fingerprints

MOST = 1.15
SHARD = 1000
ENGINE = EngineDescription("tiny", 1, 1, 4, {}, False, "untrained", {}, "torch")

Steps = dict[str, float]


def described(images: range) -> Manifest:
    """Five captions an image."""
    ids = np.repeat(np.arange(images.start, images.stop), 5)
    table = pd.DataFrame({"image_id": ids, "file": [f"{name:08d}.jpg" for name in ids.tolist()], "bytes": 1,
                          "split": "test", "caption_id": np.arange(5 * images.start, 5 * images.stop),
                          "caption": [f"a photograph of {name}" for name in ids.tolist()]})
    return Manifest(table, "slopes", Path("images"))


def job(manifest: Manifest, store: Path) -> extraction.ExtractionJob:
    engine = extraction.EngineSpec("grid", {}, Runtime())
    return extraction.ExtractionJob(manifest, manifest.images_folder, store, engine, 32, SHARD)


def extracted(asked: extraction.ExtractionJob) -> None:
    """Shards as an extraction writes them, of features that are the same for all images."""
    wanted, made_from = replace(asked.wanted(ENGINE), files=None), digest(asked.fingerprint(ENGINE))
    with making(asked.store, wanted, plan(asked.store, wanted)) as (store, todo):
        for number in todo.pending:
            shard = Shard.empty(todo.layout, number)
            for name, value in {"features": 1, "counts": 1, "sizes": 8, "bytes": 1, "status": DONE}.items():
                shard.arrays[name][:] = value
            shard.photographs = {row: f"{row:032x}" for row in shard.rows}
            write_shard(store, todo.layout, shard, made_from)


@contextmanager
def timed(found: Steps, name: str) -> Iterator[None]:
    """CPU seconds of a step. Python's garbage collector visits only objects that the step makes: visiting those of all
    imported libraries takes 0.15 s, at 10,000 images not once, and would look like a steep slope."""
    gc.collect()
    gc.freeze()
    begin = time.process_time()
    yield
    found[name] = time.process_time() - begin
    gc.unfreeze()


def work(images: int, folder: Path) -> Steps:
    """CPU seconds of each step."""
    found: Steps = {}
    with timed(found, "manifest: write, read, digest"):
        described(range(images)).save(folder / "m.parquet")
        whole = Manifest.load(folder / "m.parquet")
        assert whole.digest != whole.images_digest
    asked = job(whole, folder / "s.zarr")
    with timed(found, "plan of an extraction, and its tasks"):
        todo = plan(asked.store, asked.wanted(ENGINE))
        assert sum(len(task.files) for task in asked.tasks(ENGINE, todo, asked.store)) == images
    with timed(found, "shards: write"):
        extracted(asked)
    with timed(found, "shards: verify"):
        assert not [fault for _, faults in verify.verify(asked.store) for fault in faults]
    with timed(found, "store: open, content of all images"):
        FeatureStore(asked.store).require(whole).content(np.arange(images))
    grown = job(described(range(images // 2, images + images // 2)), asked.store)
    with timed(found, "plan of a growth by half, and its tasks"):
        todo = plan(grown.store, replace(grown.wanted(ENGINE), files=None))
        assert sum(len(task.files) for task in grown.tasks(ENGINE, todo, grown.store)) == images // 2
    with timed(found, "store: rewrite"):
        rewrite(asked.store, whole, shard_images=SHARD // 2)
    split = whole.split("test")
    with timed(found, "pieces of an embedding"):
        assert sum(len(piece.captions) for piece in split.pieces(256)) == 5 * images
    looks = np.random.default_rng(0).integers(0, 2**64, (images, 4), dtype=np.uint64)
    looks[::100] = looks[1::100]
    prints = fingerprints.Fingerprints([""] * images, looks, np.ones(images, bool))
    with timed(found, "audit: photographs alike"):
        assert sum(1 for _ in fingerprints.alike(prints, prints, 16, True)) == images // 100
    return found


def slopes(one: Steps, other: Steps, factor: float) -> dict[str, float]:
    """Steps that take less than 0.1 s of more images say nothing."""
    return {name: math.log(max(seconds, 1e-9) / max(one[name], 1e-9), factor) if seconds > 0.1 else 0.0
            for name, seconds in other.items()}


def main(sizes: list[int], measure: Callable[[int, Path], Steps] = work) -> bool:
    """Print CPU seconds at each size, and the slope from the one before the last to the last; whether all are good."""
    found = []
    for images in sizes:
        with tempfile.TemporaryDirectory() as folder:
            found.append(measure(images, Path(folder)))
    steep = slopes(found[-2], found[-1], sizes[-1] / sizes[-2])
    print(f"{'CPU-s':40s}", *(f"{images:>12,}" for images in sizes), f"{'slope':>8s}")
    for name, slope in steep.items():
        print(f"{name:40s}", *(f"{each[name]:12.2f}" for each in found), f"{slope:8.2f}",
              " too steep" if slope > MOST else "")
    return all(slope <= MOST for slope in steep.values())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    sys.exit(0 if main(parser.parse_args().sizes) else 1)

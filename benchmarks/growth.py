"""A store of 10,000 images of which 100 go, 100 come and 100 are replaced: what is extracted, and
what stays as it was.

    python -m benchmarks.growth
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image

from pipeline.foundation import manifest
from pipeline.foundation.manifest import Manifest
from pipeline.make.features import extraction
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.store import FeatureStore, verify
from pipeline.make.features.store.rewrite import rewrite

ENGINE = extraction.EngineSpec(
    "grid",
    {"network": "test_efficientnet", "weights": "untrained", "image_size": 64, "grid": 2},
    Runtime(),
)


def photograph(path: Path, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), np.uint8)
    Image.fromarray(pixels).resize((64, 48), Image.Resampling.BICUBIC).save(path, quality=90)


def described(folder: Path, names: list[str]) -> Manifest:
    """A manifest by a CSV; ids stay those of the names."""
    table = pd.DataFrame({"image": names, "caption": names, "split": "test"})
    table.to_csv(folder.parent / "captions.csv", index=False)
    made = manifest.build("growth", folder, folder.parent / "captions.csv")
    ids = made.table["file"].str.removesuffix(".jpg").astype("int64")
    return replace(made, source=made.table.assign(image_id=ids, caption_id=ids))


def job(images: Manifest, store: Path) -> extraction.ExtractionJob:
    """An image a batch: then its features are the same bits in whatever company it is extracted."""
    return extraction.ExtractionJob(
        images, images.images_folder, store, ENGINE, batch_size=1, shard_images=128
    )


def files(store: Path) -> dict[str, bytes]:
    """The files of all shards' arrays."""
    return {
        file.relative_to(store).as_posix(): file.read_bytes()
        for file in sorted(store.glob("*/c/**/*"))
        if file.is_file() and "image_ids" not in file.parts
    }


def main(count: int, changed: int) -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "images")
        folder.mkdir()
        for number in range(count):
            photograph(folder / f"{number}.jpg", number)
        names = [f"{number}.jpg" for number in range(count + changed)]
        store = Path(temporary, "grown.zarr")
        begin = time.process_time()
        extraction.extract(job(described(folder, names[:count]), store))
        print(f"{count:,} images extracted in {time.process_time() - begin:.0f} CPU-s")
        before = files(store)

        middle = count // 2
        for number in range(middle, middle + changed):
            photograph(folder / f"{number}.jpg", -number % 2**32)
        for number in range(changed):
            (folder / names[number]).unlink()
            photograph(folder / names[count + number], count + number)
        now = described(folder, names[changed:])
        begin = time.process_time()
        done = extraction.extract(job(now, store))
        print(
            f"{changed} gone, {changed} came, {changed} replaced: {done.extracted} images extracted in "
            f"{time.process_time() - begin:.0f} CPU-s"
        )
        after = files(store)
        same = sum(after.get(name) == content for name, content in before.items())
        print(f"files of the shards that were there: {same:,} of {len(before):,} the same bytes")

        at_once = Path(temporary, "at_once.zarr")
        extraction.extract(job(now, at_once))
        one, other = (FeatureStore(path).require(now) for path in (store, at_once))
        images = np.arange(len(now.images))
        equal = sum(
            np.array_equal(one.read(part)[0][place], other.read(part)[0][place])
            for part in np.array_split(images, 100)
            for place in range(len(part))
        )
        print(
            f"equal to the store made at once: {equal:,} of {len(images):,} images bit for bit; content digest "
            f"{'equal' if one.content(images) == other.content(images) else 'DIFFERENT'}"
        )
        rewrite(store, now)
        print(
            f"after compacting: {'all' if files(store) == files(at_once) else 'NOT ALL'} files the same bytes; "
            f"verify finds {sum(len(found) for _, found in verify.verify(store))} faults"
        )
        shutil.rmtree(store)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--changed", type=int, default=100)
    given = parser.parse_args()
    main(given.images, given.changed)

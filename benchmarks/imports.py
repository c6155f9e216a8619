"""What `pipeline store import` takes of each format, in CPU-seconds a GB of float32: invented
features of 36 x 2,048 values, a third of them zero, stored as float16 without compression. Least
of several imports in turns, files in memory, torch imported before. How many are zero matters
where files are compressed.

    python -m benchmarks.imports  # 600 images, 0.18 GB a format; needs 2 GB of disk
"""

from __future__ import annotations

import argparse
import base64
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import torch

from benchmarks import numbers
from pipeline.extensions.importers import ImportJob, import_features
from pipeline.foundation.manifest import Manifest
from pipeline.make.features.store import FeatureStore

ITEMS, DIMENSION, CAPTIONS, SHARD = 36, 2048, 5, 128
BOXES = np.ones((ITEMS, 4), np.float32)
# Of ten COCO photographs' features by bottom-up-attention 24 to 39 % are zero, on average 34 %
THIRD = 1 / 3

Features = Callable[[int], np.ndarray]


def described(images: int) -> Manifest:
    """Images of the split test, with five captions each."""
    rows = [
        (image, f"{image}.jpg", 1, "test", CAPTIONS * image + each, f"caption {each} of {image}")
        for image in range(images)
        for each in range(CAPTIONS)
    ]
    return Manifest(
        pd.DataFrame(rows, columns=["image_id", "file", "bytes", "split", "caption_id", "caption"]),
        "invented",
        Path(),
    )


def features(zeros: float, image: int) -> np.ndarray:
    """[36, 2048] float32, the same for the same image; a share of the values is zero, no value is
    below.
    """
    random = np.random.default_rng(image)
    values = np.abs(random.standard_normal((ITEMS, DIMENSION), dtype=np.float32))
    return np.where(random.random(values.shape, dtype=np.float32) < zeros, np.float32(0), values)


def scan(folder: Path, images: int, of: Features) -> None:
    array = np.lib.format.open_memmap(
        folder / "test_ims.npy", "w+", np.float32, (images, ITEMS, DIMENSION)
    )
    for image in range(images):
        array[image] = of(image)
    (folder / "test_ids.txt").write_text("".join(f"{image}\n" for image in range(images)))
    (folder / "test_caps.txt").write_text(
        "".join(
            f"caption {each} of {image}\n" for image in range(images) for each in range(CAPTIONS)
        )
    )


def tsv(folder: Path, images: int, of: Features) -> None:
    with (folder / "features.tsv").open("wb") as file:
        for image in range(images):
            head = f"{image}\t640\t480\t{ITEMS}".encode()
            arrays = [base64.b64encode(values.tobytes()) for values in (BOXES, of(image))]
            file.write(b"\t".join([head, *arrays]) + b"\n")


def hdf5(folder: Path, images: int, of: Features) -> None:
    with h5py.File(folder / "trn_ft.hdf5", "w") as file:
        for image in range(images):
            file[str(image)] = of(image)


def each(
    write: Callable[[str, np.ndarray], object], suffix: str
) -> Callable[[Path, int, Features], None]:
    """A file an image."""

    def of_images(folder: Path, images: int, of: Features) -> None:
        for image in range(images):
            write(f"{folder / str(image)}{suffix}", of(image))

    return of_images


def beside(values: np.ndarray) -> dict[str, Any]:
    """Members of an .npz of bottom-up-attention.pytorch."""
    return {
        "x": values,
        "bbox": BOXES,
        "num_bbox": np.array(ITEMS),
        "image_h": np.array(480),
        "image_w": np.array(640),
    }


torch_file = each(lambda path, values: torch.save(torch.from_numpy(values), path), ".pth")
compressed = each(lambda path, values: np.savez_compressed(path, **beside(values)), ".npz")
# What is measured -> the format, what writes it into a folder, and how many of the values are zero.
SOURCES: dict[str, tuple[str, Callable[[Path, int, Features], None], float]] = {
    "`scan`": ("scan", scan, THIRD),
    "`butd-tsv`": ("butd-tsv", tsv, THIRD),
    "`folder`, `.npy`": ("folder", each(np.save, ".npy"), THIRD),
    "`folder`, `.pth`": ("folder", torch_file, THIRD),
    "`folder`, `.npz`": (
        "folder",
        each(lambda path, values: np.savez(path, **beside(values)), ".npz"),
        THIRD,
    ),
    "`folder`, `.npz` compressed": ("folder", compressed, THIRD),
    "`folder`, `.npz` compressed, half of the values zero": ("folder", compressed, 0.5),
    "`folder`, `.npz` compressed, none zero": ("folder", compressed, 0),
    "`hgr`, `.hdf5`": ("hgr", hdf5, THIRD),
}


def seconds(job: ImportJob) -> float:
    """The CPU time of an import, of this process."""
    begin = time.process_time()
    import_features(job)
    return time.process_time() - begin


def main(images: int, rounds: int) -> None:
    manifest, gigabytes = described(images), images * ITEMS * DIMENSION * 4 / 1e9
    with tempfile.TemporaryDirectory() as place:
        paths = {title: Path(place, str(number)) for number, title in enumerate(SOURCES)}
        for title, (_, write, zeros) in SOURCES.items():
            paths[title].mkdir()
            write(paths[title], images, partial(features, zeros))
        taken: dict[str, list[float]] = {title: [] for title in SOURCES}
        for number in range(rounds):
            for title, (form, _, zeros) in SOURCES.items():
                store = Path(place, f"{number}.zarr")
                files = tuple(paths[title].glob("*.tsv")) or (paths[title],)
                taken[title].append(
                    seconds(ImportJob(manifest, form, files, store, SHARD, if_changed="redo"))
                    / gigabytes
                )
                found = FeatureStore(store).read(np.array([1]))[0][0]
                assert np.array_equal(found, features(zeros, 1).astype(np.float16))
    print(f"{images} images, {gigabytes:.2f} GB; CPU-s a GB, least and most of {rounds}")
    for title, found in taken.items():
        print(f"{title:52} {min(found):6.2f} {max(found):6.2f}")
    numbers.keep(
        "imports",
        [("source", ""), ("least", ".1f"), ("most", ".1f")],
        [[title, min(found), max(found)] for title, found in taken.items()],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    main(given.images, given.rounds)

"""Write the sample corpus: a folder of pictures, and their captions in the format of Karpathy's
files.
"""

import io
import json
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pipeline.foundation.files.atomic import write_bytes, write_text
from pipeline.foundation.manifest.sample.paint import paint
from pipeline.foundation.manifest.sample.scenes import compose
from pipeline.foundation.manifest.sample.wording import tokens, write_captions
from pipeline.foundation.parts.errors import InputError

CAPTIONS = 5
SPLITS = ("train", "train", "val", "train", "train", "test")  # of every six consecutive scenes
Made = TypeVar("Made")
MIN_IMAGES = 12
MAX_IMAGES = 1_000_000
MIN_SIZE = 32
MAX_SIZE = 4096


def render(
    out: Path,
    images: int = 600,
    size: int = 256,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    processes: int = 1,
) -> Path:
    """Write `out/images/sample_*.jpg` (RGB, `size` pixels square), then `out/dataset_sample.json`
    in Karpathy's format.

    images: how many; two thirds are for training, a sixth each for validation and test. Scene,
        captions and split of image i depend on `seed` and i alone, and the bytes on the versions of
        NumPy and Pillow, not on the CPU (see `elementary`). A sample that was in `out` before is
        replaced. progress: called with the number of images finished so far. processes: how many
        share the work.

    Returns:
        The JSON file, which is written last.

    Raises:
        InputError: If an argument is out of range or `out` cannot be written.
    """
    require("images", images, size, seed)
    folder = out / "images"
    listing = out / "dataset_sample.json"
    with replacing_sample(folder, listing, "sample_{:06d}.jpg", images):
        make = partial(_make, folder, size, seed)
        entries = list(in_order(make, images, processes, progress))
        content = json.dumps({"dataset": "sample", "images": entries}, indent=1)
        write_text(listing, content + "\n", durable=False)
    return listing


def require(noun: str, count: int, size: int, seed: int, even: bool = False) -> None:
    """Check how many images or clips are asked for, their size and the seed."""
    count_fits = MIN_IMAGES <= count <= MAX_IMAGES
    size_fits = MIN_SIZE <= size <= MAX_SIZE
    evenness = ""
    if even:
        evenness = ", an even number"
        size_fits = size_fits and size % 2 == 0
    if not (count_fits and size_fits and seed >= 0):
        raise InputError(
            f"expected {MIN_IMAGES} to {MAX_IMAGES} {noun} (every split needs some) of {MIN_SIZE} to "
            f"{MAX_SIZE} pixels{evenness}, and a seed from 0 on; got {count}, {size} and {seed}"
        )


@contextmanager
def replacing_sample(folder: Path, listing: Path, name: str, count: int) -> Iterator[None]:
    """Write a sample's files and its listing in the block; other files of an earlier sample are
    removed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        listing.unlink(missing_ok=True)
        sample_files = {name.format(number) for number in range(count)}
        stem, _, _ = name.partition("_")
        for path in folder.glob(f"{stem}_*{Path(name).suffix}*"):
            if path.name not in sample_files:
                path.unlink()
        yield
    except OSError as error:
        raise InputError(
            f"cannot write the sample to {listing.parent}: {error}; choose another folder or free some "
            "space"
        ) from error


def in_order(
    make: Callable[[int], Made], count: int, processes: int, progress: Callable[[int], None] | None
) -> Iterator[Made]:
    """Make something for each number, in several processes."""
    for done, made in enumerate(_each(make, count, processes), start=1):
        yield made
        if progress is not None:
            progress(done)


def _each(make: Callable[[int], Made], count: int, processes: int) -> Iterator[Made]:
    if processes == 1:
        yield from map(make, range(count))
        return
    # A terminal's Ctrl-C is for this process, which ends the others.
    ignoring = (signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(processes, initializer=signal.signal, initargs=ignoring) as pool:
        yield from pool.map(make, range(count), chunksize=8)


def _make(folder: Path, size: int, seed: int, index: int) -> dict[str, Any]:
    """Write one image; returns its element of `images` in the JSON file."""
    scene = compose(seed, index)
    name = f"sample_{index:06d}.jpg"
    of_captions = np.random.default_rng([seed, index, 1])
    captions = write_captions(scene, CAPTIONS, of_captions)
    of_picture = np.random.default_rng([seed, index, 2])
    picture = paint(scene, size, of_picture)
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=92, subsampling=0)
    write_bytes(folder / name, content.getvalue(), durable=False)
    ids = [index * CAPTIONS + k for k in range(CAPTIONS)]
    sentences = []
    for raw, sentid in zip(captions, ids, strict=True):
        sentences.append({"raw": raw, "tokens": tokens(raw), "imgid": index, "sentid": sentid})
    return {
        "filename": name,
        "imgid": index,
        "split": SPLITS[index % len(SPLITS)],
        "sentids": ids,
        "sentences": sentences,
    }

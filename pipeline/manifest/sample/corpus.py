"""Write the sample corpus: a folder of pictures, and their captions in the format of Karpathy's files."""

import io
import json
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pipeline.files.atomic import write_bytes, write_text
from pipeline.manifest.sample.paint import paint
from pipeline.manifest.sample.scenes import compose
from pipeline.manifest.sample.wording import tokens, write_captions
from pipeline.parts.errors import InputError

CAPTIONS = 5
SPLITS = ("train", "train", "val", "train", "train", "test")  # of every six consecutive scenes
Made = TypeVar("Made")
MIN_IMAGES, MAX_IMAGES, MIN_SIZE, MAX_SIZE = 12, 1_000_000, 32, 4096


def render(out: Path, images: int = 600, size: int = 256, seed: int = 0,
           progress: Callable[[int], None] | None = None, processes: int = 1) -> Path:
    """Write `out/images/sample_*.jpg` (RGB, `size` pixels square), then `out/dataset_sample.json`.

    Two thirds of the images are for training, a sixth each for validation and test. Scene, captions and split of image
    i depend on `seed` and i alone. With the same versions of NumPy and Pillow the bytes are the same on every CPU (see
    `elementary`). Every file appears complete or not at all, the JSON file last. A sample that was in `out` before is
    replaced.

    Args:
        out: A folder; it need not exist.
        images: How many, 12 to 1,000,000.
        size: Pixels a side, 32 to 4,096.
        seed: At least 0.
        progress: Called with the number of images finished so far.
        processes: Processes of this machine that share the work.

    Returns:
        The JSON file, in Karpathy's format.

    Raises:
        InputError: If an argument is out of range or `out` cannot be written.
    """
    if not MIN_IMAGES <= images <= MAX_IMAGES:
        raise InputError(f"images must be from {MIN_IMAGES} to {MAX_IMAGES} (every split needs some), not {images}")
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise InputError(f"size must be from {MIN_SIZE} to {MAX_SIZE} pixels, not {size}")
    if seed < 0:
        raise InputError(f"seed must not be negative, it is {seed}")
    folder, listing = out / "images", out / "dataset_sample.json"
    with replacing_sample(folder, listing, "sample_{:06d}.jpg", images):
        entries = list(in_order(partial(_make, folder, size, seed), images, processes, progress))
        write_text(listing, json.dumps({"dataset": "sample", "images": entries}, indent=1) + "\n", durable=False)
    return listing


@contextmanager
def replacing_sample(folder: Path, listing: Path, name: str, count: int) -> Iterator[None]:
    """Write a sample's files and its listing in the block; other files of an earlier sample are removed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        listing.unlink(missing_ok=True)
        sample_files = {name.format(number) for number in range(count)}
        for path in folder.glob(f"{name.partition('_')[0]}_*{Path(name).suffix}*"):
            if path.name not in sample_files:
                path.unlink()
        yield
    except OSError as error:
        raise InputError(f"cannot write the sample to {listing.parent}: {error}; choose another folder or free some "
                         "space") from error


def in_order(make: Callable[[int], Made], count: int, processes: int, progress: Callable[[int], None] | None
             ) -> Iterator[Made]:
    """Make something for each number, in several processes."""
    # A terminal's Ctrl-C is for this process, which ends the others.
    with nullcontext() if processes == 1 else ProcessPoolExecutor(
            processes, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as pool:
        every = pool.map(make, range(count), chunksize=8) if pool else map(make, range(count))
        for done, made in enumerate(every, start=1):
            yield made
            if progress is not None:
                progress(done)


def _make(folder: Path, size: int, seed: int, index: int) -> dict[str, Any]:
    """Write one image; returns its element of `images` in the JSON file."""
    scene, name, picture = compose(seed, index), f"sample_{index:06d}.jpg", io.BytesIO()
    captions = write_captions(scene, CAPTIONS, np.random.default_rng([seed, index, 1]))
    paint(scene, size, np.random.default_rng([seed, index, 2])).save(picture, "JPEG", quality=92, subsampling=0)
    write_bytes(folder / name, picture.getvalue(), durable=False)
    ids = [index * CAPTIONS + k for k in range(CAPTIONS)]
    sentences = [{"raw": raw, "tokens": tokens(raw), "imgid": index, "sentid": sentid}
                 for raw, sentid in zip(captions, ids, strict=True)]
    return {"filename": name, "imgid": index, "split": SPLITS[index % len(SPLITS)], "sentids": ids,
            "sentences": sentences}

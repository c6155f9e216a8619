"""Reading a region store (36 x 2048 float16) in shuffled batches of 128, against np.memmap on the
raw array, and what each layout and compressor costs: the table from which the default is chosen.
All in one run, files in the page cache.

    # 7,500 images, 1.1 GB a store; needs 6 GB of disk
    python -m benchmarks.stores
    # a training's batches alone, from the array and the store in turns
    python -m benchmarks.stores --training
    # our reader and zarr's pipelines in turns; needs no torch, but for zarr 3.4 Python 3.12
    python -m benchmarks.stores --pipelines --images 2000
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from itertools import count, islice, product
from pathlib import Path
from pydoc import locate
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from tqdm import tqdm
from zarr.buffer.cpu import NDBuffer
from zarr.codecs import ZstdCodec

from benchmarks import numbers
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest import Split
from pipeline.make.features.store import (
    FeatureStore,
    Shard,
    StoreLayout,
    Wanted,
    making,
    plan,
    write_shard,
)

if TYPE_CHECKING:
    from pipeline.make.training.batches import TrainingBatches

ITEMS, DIMENSION, BATCH, SHARD = 36, 2048, 128, 128
Read = Callable[[np.ndarray], object]
PIPELINES = {
    "zarr, default": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "zarr, fused": "zarr.core.codec_pipeline.FusedCodecPipeline",
    "zarrs, by slices": "zarrs.ZarrsCodecPipeline",
}
"""What may decode for zarr."""


def features(first: int, count: int) -> np.ndarray:
    """Rectified noise, half of it zero: float16 [count, 36, 2048], the same for the same rows."""
    noise = np.random.default_rng(first).standard_normal(
        (count, ITEMS, DIMENSION), dtype=np.float32
    )
    return np.maximum(noise, 0).astype(np.float16)


def raw(folder: Path, images: int) -> Read:
    """The raw array on disk, memory-mapped."""
    path = folder / "raw.npy"
    array = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.float16, shape=(images, ITEMS, DIMENSION)
    )
    for first in range(0, images, SHARD):
        array[first : first + SHARD] = features(first, min(SHARD, images - first))
    array.flush()
    mapped = np.load(path, mmap_mode="r")
    out = np.empty((BATCH, ITEMS, DIMENSION), np.float16)  # as the store's reader has one
    return lambda rows: mapped.take(rows, axis=0, out=out, mode="clip")


def store(folder: Path, images: int, compressor: str, shard_rows: int = SHARD) -> Path:
    """A feature store as an extraction writes it."""
    path = folder / f"{compressor}.zarr"
    layout = StoreLayout(images, ITEMS, DIMENSION, shard_rows, compressor)
    wanted = Wanted(np.arange(images), np.zeros(images, np.int64), {}, layout)
    with making(path, wanted, plan(path, wanted)):
        pass
    for number in range(layout.shards):
        shard = Shard.empty(layout, number)
        values = features(shard.rows.start, len(shard.rows))
        for row in shard.rows:
            shard.fill(row, values[row - shard.rows.start], (640, 480), {})
        write_shard(path, layout, shard, digest({}))
    return path


def plain(folder: Path, images: int, chunk: int, shard: int | None, compressor: str) -> Read:
    """A zarr array of another layout, read by zarr."""
    path = folder / f"plain{chunk}-{shard}-{compressor}.zarr"
    array = zarr.create_array(
        path,
        shape=(images, ITEMS, DIMENSION),
        dtype="float16",
        filters=None,
        chunks=(chunk, ITEMS, DIMENSION),
        shards=shard and (shard, ITEMS, DIMENSION),
        compressors=ZstdCodec(level=1) if compressor == "zstd" else None,
    )
    for first in range(0, images, SHARD):
        array[first : first + SHARD] = features(first, min(SHARD, images - first))
    return lambda rows: array.oindex[np.sort(rows)]


def shuffled(images: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Batches of images at random."""
    while True:
        order = rng.permutation(images)
        yield from np.split(order[: images // BATCH * BATCH], images // BATCH)


def block_shuffled(images: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Batches of 16 groups of 8 neighbours."""
    for groups in shuffled(images // 8 // 16 * BATCH, rng):
        yield (groups[:16, None] % (images // 8) * 8 + np.arange(8)).ravel()


def batches_a_second(
    read: Read, batches: Iterator[np.ndarray], most: int, limit: float = 5.0
) -> float:
    """After one batch to warm up: at most `most` batches or `limit` seconds."""
    read(next(batches))
    begin, done = time.perf_counter(), 0
    while done < most and time.perf_counter() - begin < limit:
        read(next(batches))
        done += 1
    return done / (time.perf_counter() - begin)


def readers(folder: Path, images: int) -> Iterator[tuple[str, Path | None, Read]]:
    """Name, place and reader of each way to keep the features; raw first."""
    yield "raw array, np.memmap", folder / "raw.npy", raw(folder, images)
    for compressor in ("none", "zstd"):
        path = store(folder, images, compressor)
        opened, array = FeatureStore(path), zarr.open_group(path, mode="r")["features"]
        out = np.empty((BATCH, ITEMS, DIMENSION), np.float16)
        yield f"store, {compressor}", path, lambda rows, o=opened, b=out: o.read(rows, b)  # type: ignore[misc]
        yield (
            f"store, {compressor}, read by zarr",
            None,
            lambda rows, a=array: a.oindex[np.sort(rows)],
        )  # type: ignore[misc, index]
    for chunk, shard, compressor in ((1, None, "none"), (8, SHARD, "none"), (8, SHARD, "zstd")):
        name = (
            f"zarr, chunks of {chunk}"
            + (f" in shards of {shard}" if shard else "")
            + f", {compressor}"
        )
        yield (
            name,
            folder / f"plain{chunk}-{shard}-{compressor}.zarr",
            plain(folder, images, chunk, shard, compressor),
        )


class Mapped:
    """The raw array as a source of images that a training reads."""

    def __init__(self, path: Path) -> None:
        self.values, self.slots = np.load(path, mmap_mode="r"), ITEMS

    def read(self, rows: np.ndarray, out: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        out = np.empty((len(rows), ITEMS, DIMENSION), np.float16) if out is None else out
        return self.values.take(rows, axis=0, out=out, mode="clip"), np.full(len(rows), ITEMS)


def training_batches(source: Any, images: int, steps: int) -> TrainingBatches:
    """A training's batches of images with five captions each. steps: how many, however few images
    there are.
    """
    from benchmarks import training_step
    from pipeline.make.training.batches import Drawing, TrainingBatches

    rng = np.random.default_rng(0)
    captions = [
        " ".join(map(str, rng.integers(0, 7000, rng.integers(8, 19)))) for _ in range(5 * images)
    ]
    split = Split(
        "train",
        np.arange(images),
        np.arange(images),
        np.arange(5 * images),
        np.arange(images).repeat(5),
        np.array(captions, np.dtypes.StringDType()),
    )
    return TrainingBatches(
        source, split, training_step.words(), Drawing(BATCH, 0, steps=steps), 0.2, 0.2
    )


def in_training(folder: Path, images: int, rounds: int = 8, most: int = 25) -> None:
    """Compare the array and the store in turns: rows alone, and all that a training reads, in its
    thread.
    """
    from pipeline.make.training.batches import AHEAD

    raw(folder, images)
    sources: list[Any] = [Mapped(folder / "raw.npy"), FeatureStore(store(folder, images, "none"))]
    for source, first in product(sources, range(0, images, BATCH)):  # each page and value once
        source.read(np.arange(first, min(first + BATCH, images)), None)[0].max()
    out, rows = (
        np.empty((BATCH, ITEMS, DIMENSION), np.float16),
        shuffled(images, np.random.default_rng(0)),
    )
    loaders = [training_batches(source, images, AHEAD + 2 + most) for source in sources]
    kinds: dict[str, Callable[[int, int], Iterator[object]]] = {
        "rows": lambda which, _: (sources[which].read(next(rows), out) for _ in count()),
        "training's batches": lambda which, number: loaders[which].epoch(number),
    }
    print(
        f"{'ms a batch, median and least':30} {'array':>15} {'store':>15} {'ratio of medians':>18}"
    )
    table: list[list[Any]] = []
    for name, batches_of in kinds.items():
        times = (
            np.array(
                [
                    [seconds_a_batch(batches_of(which, number), most) for which in (0, 1)]
                    for number in range(rounds)
                ]
            )
            * 1e3
        )  # [rounds, 2, 2]
        least, median = times.min(axis=0), np.median(times, axis=0)
        for clock, kind in enumerate(("elapsed", "CPU")):
            array, stored = (
                [float(median[which, clock]), float(least[which, clock])] for which in (0, 1)
            )
            table.append([f"{name}, {kind}", array, stored, stored[0] / array[0]])
            columns = (f"{middle:7.2f} {shortest:7.2f}" for middle, shortest in (array, stored))
            print(f"{f'{name}, {kind}':30}", *columns, f"{stored[0] / array[0]:18.2f}")
    numbers.keep(
        "stores_training",
        [
            ("ms a batch, median (least)", ""),
            ("array", ".2f"),
            ("store", ".2f"),
            ("ratio of medians", ".2f"),
        ],
        table,
    )


def seconds_a_batch(batches: Iterator[object], most: int) -> tuple[float, float]:
    """Elapsed and CPU time of a batch, after those that are read ahead."""
    from pipeline.make.training.batches import AHEAD

    for _ in islice(batches, AHEAD + 2):
        pass
    begin, own = time.perf_counter(), time.process_time()
    for _ in islice(batches, most):
        pass
    return (time.perf_counter() - begin) / most, (time.process_time() - own) / most


def waiting(path: Path, steps: int) -> None:
    """Train the region head of the papers' size on shuffled batches of a store: how long a step
    waits for its batch.
    """
    import torch

    from benchmarks import training_step

    torch.set_num_threads(2)
    opened = FeatureStore(path)
    step = training_step.trainer(training_step.words(), DIMENSION, 1024)
    batches = training_batches(opened, opened.layout.total, steps + 1).epoch(0)
    step(next(batches))
    waited, begin = 0.0, time.perf_counter()
    for _ in range(steps):
        asked = time.perf_counter()
        batch = next(batches)
        waited += time.perf_counter() - asked
        step(batch)
    share = waited / (time.perf_counter() - begin)
    tqdm.write(
        f"training on {path.name}: {share:.2%} of {steps} steps of {BATCH} was waiting for data"
    )


def size(path: Path) -> int:
    return sum(
        file.stat().st_size
        for file in ([path] if path.is_file() else path.rglob("*"))
        if file.is_file()
    )


def by_pipeline(path: Path, pipeline: str) -> Read:
    """Read a store by zarr with a pipeline: rows in their order in the store."""
    chosen = {"codec_pipeline.path": pipeline}
    by_slices = pipeline.startswith("zarrs.")  # it leaves picked rows to the default pipeline
    with zarr.config.set(chosen):
        array: Any = zarr.open_group(path, mode="r")["features"]
    out = np.empty((BATCH, ITEMS, DIMENSION), np.float16)

    def slices(rows: np.ndarray) -> np.ndarray:
        filled = 0
        for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
            target = NDBuffer.from_numpy_array(out[filled : filled + len(run)])
            array.get_basic_selection((slice(run[0], run[-1] + 1),), out=target)
            filled += len(run)
        return out[:filled]

    def read(rows: np.ndarray) -> np.ndarray:
        rows = np.sort(rows)
        with zarr.config.set(chosen):
            if by_slices or rows[-1] - rows[0] == len(rows) - 1:
                return slices(rows)
            target = NDBuffer.from_numpy_array(out[: len(rows)])
            array.get_orthogonal_selection((rows, slice(None), slice(None)), out=target)
            return out[: len(rows)]

    return read


def pipelines_of(path: Path) -> dict[str, Read]:
    """Name -> a way to read a store: our reader first, then each pipeline that is installed."""
    opened = FeatureStore(path)
    out = np.empty((BATCH, ITEMS, DIMENSION), np.float16)
    reads: dict[str, Read] = {"our reader": lambda rows: opened.read(rows, out[: len(rows)])[0]}
    for name, pipeline in PIPELINES.items():
        if locate(pipeline):
            package = pipeline.partition(".")[0]
            said = name.replace(package, f"{package} {version(package)}", 1)
            reads[said] = by_pipeline(path, pipeline)
    picked = np.array([1, 4, 5, 6, 11])
    for name, read in reads.items():
        if not np.array_equal(np.asarray(read(picked)), features(0, 16)[picked]):
            raise ValueError(f"{name}: other values than were written")
    return reads


def in_turns(
    reads: Sequence[Read], drawn: Callable[[], list[np.ndarray]], rounds: int
) -> np.ndarray:
    """Milliseconds a batch, elapsed and CPU, of each way: [rounds, ways, 2]."""
    taken = np.empty((rounds + 1, len(reads), 2))
    for number in range(rounds + 1):
        batches = drawn()
        for way, read in enumerate(reads):
            began, cpu = time.perf_counter(), time.process_time()
            for rows in batches:
                read(rows)
            used = np.array([time.perf_counter() - began, time.process_time() - cpu])
            taken[number, way] = used * 1e3 / len(batches)
    return taken[1:]  # the first round warms up


def compare_pipelines(folder: Path, images: int, rounds: int = 9) -> None:
    """Compare our reader and zarr's pipelines in turns on uncompressed stores: random batches from
    shards of 128 images and of 16, where they lie as far apart as in COCO, and a whole store.
    """
    random = shuffled(images, np.random.default_rng(0))
    whole = np.split(np.arange(images), range(BATCH, images, BATCH))
    stores = {}
    for shard_rows in (SHARD, 16):
        beside = folder / str(shard_rows)
        beside.mkdir()
        stores[shard_rows] = pipelines_of(store(beside, images, "none", shard_rows))
    names = list(stores[SHARD])
    measured = [
        in_turns([*stores[SHARD].values()], lambda: list(islice(random, 4)), rounds),
        in_turns([*stores[16].values()], lambda: list(islice(random, 4)), rounds),
        in_turns([*stores[SHARD].values()], lambda: whole, rounds),
    ]
    columns = [("ms a batch, median (least); CPU time to our reader's", "")]
    for kind in ("random", "random, shards of 16", "whole store"):
        columns += [(kind, ".1f"), ("ratio", ".1f")]
    table: list[list[Any]] = []
    for way, name in enumerate(names):
        row: list[Any] = [name]
        for taken in measured:
            elapsed = taken[:, way, 0]
            row.append([float(np.median(elapsed)), float(elapsed.min())])
            row.append(float(np.median(taken[:, way, 1] / taken[:, 0, 1])))
        table.append(row)
    print(numbers.table([heading for heading, _ in columns], numbers.shown(columns, table)))
    numbers.keep("stores_pipelines", columns, table)


def main(images: int = 7500) -> None:
    print(
        f"{images} images of {ITEMS} x {DIMENSION} float16, batches of {BATCH} a second; ratios to np.memmap"
    )
    print(
        f"{'':46} {'GB':>5} {'random /s':>10} {'ratio':>6} {'blocks /s':>10} {'ratio':>6}",
        flush=True,
    )
    base: list[float] = []
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, path, read in tqdm(readers(Path(folder), images), total=8, leave=False):
            rates = [
                batches_a_second(read, order(images, np.random.default_rng(0)), images // BATCH)
                for order in (shuffled, block_shuffled)
            ]
            base = base or rates
            occupied = f"{size(path) / 1e9:5.2f}" if path else "     "
            columns = " ".join(
                f"{rate:10.1f} {rate / first:6.2f}" for rate, first in zip(rates, base, strict=True)
            )
            tqdm.write(f"{name:46} {occupied} {columns}")
            rows.append(
                [
                    name,
                    size(path) / 1e9 if path else None,
                    *(
                        value
                        for rate, first in zip(rates, base, strict=True)
                        for value in (rate, rate / first)
                    ),
                ]
            )
        waiting(Path(folder, "none.zarr"), steps=20)
    numbers.keep(
        "stores",
        [
            ("", ""),
            ("GB", ".2f"),
            ("random /s", ",.1f"),
            ("ratio", ".2f"),
            ("blocks /s", ",.1f"),
            ("ratio", ".2f"),
        ],
        rows,
    )


def command(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=7500)
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--pipelines", action="store_true")
    asked = parser.parse_args(arguments)
    if asked.images < BATCH:
        parser.exit(
            2, f"--images {asked.images}: a batch has {BATCH} images; give as many or more\n"
        )
    if asked.training:
        with tempfile.TemporaryDirectory() as made:
            in_training(Path(made), asked.images)
    elif asked.pipelines:
        with tempfile.TemporaryDirectory() as made:
            compare_pipelines(Path(made), asked.images)
    else:
        main(asked.images)


if __name__ == "__main__":
    command()

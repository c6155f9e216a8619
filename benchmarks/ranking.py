"""Ranking against the field's loops, and from embeddings against the matrix product alone; all in
one run.

    # 5,000 images x 25,000 captions; 100,000 x 500,000, embeddings on disk
    python -m benchmarks.ranking
    # the first alone, in a minute
    python -m benchmarks.ranking --skip-large
    # the second alone, on dask workers of this machine with a thread each
    python -m benchmarks.ranking --workers 2
    # torch's other float32 kernel, where that is the faster one
    python -m benchmarks.ranking --products medium
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from tqdm import tqdm

from benchmarks import numbers
from benchmarks.measure import RATIOS, high_water_mark, new_process, report_ratios
from pipeline.foundation.compute import cluster
from pipeline.foundation.evaluation.metrics import STATISTICS, evaluate
from pipeline.foundation.evaluation.retrieval import Embeddings, consecutive_captions
from pipeline.foundation.evaluation.retrieval.workers import counted_on


def recalls_by_sorting(scores: np.ndarray) -> list[float]:
    """R@1, R@5, R@10 both ways as the released evaluation code finds them (VSE++, VSE∞, VSE+2AD):
    one argsort of a whole row for each query in a Python loop, five captions an image by position.
    scores: [I, 5 I].
    """
    best = np.zeros(len(scores))
    for image, row in enumerate(scores):
        order = np.argsort(row)[::-1]
        best[image] = min(
            np.where(order == caption)[0][0] for caption in range(5 * image, 5 * image + 5)
        )
    by_caption = scores.T
    found = np.zeros(len(by_caption))
    for image in range(len(scores)):
        for caption in range(5 * image, 5 * image + 5):
            order = np.argsort(by_caption[caption])[::-1]
            found[caption] = np.where(order == image)[0][0]
    return [100.0 * float(np.mean(ranks < k)) for ranks in (best, found) for k in (1, 5, 10)]


def noisy_pairs(images: int, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Unit vectors of images [I, D], and of five captions near each [5 I, D]."""
    generator = torch.Generator().manual_seed(0)
    pictures = torch.randn(images, dim, generator=generator)
    captions = pictures.repeat_interleave(5, 0).add_(
        torch.randn(images * 5, dim, generator=generator), alpha=5
    )
    return torch.nn.functional.normalize(pictures, dim=1), torch.nn.functional.normalize(
        captions, dim=1
    )


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def extra_megabytes(work: Callable[[], Any]) -> float:
    """How far the process's resident memory rises above its start during `work`."""
    process, finished = psutil.Process(), threading.Event()
    start = highest = process.memory_info().rss

    def watch() -> None:
        nonlocal highest
        while not finished.wait(0.001):
            highest = max(highest, process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    finished.set()
    watcher.join()
    return (highest - start) / 1e6


def compare_loops(images: int, dim: int, repeats: int) -> None:
    pictures, captions = noisy_pairs(images, dim)
    owner = consecutive_captions((images, images * 5))
    # First of all, since later runs reuse memory that the process already holds.
    extra = extra_megabytes(lambda: evaluate(Embeddings(pictures, captions), owner))
    product: list[float] = []
    embedded: list[float] = []
    # Alternately, so that both meet the same conditions on a busy machine.
    for _ in range(repeats):
        product.append(seconds(lambda: pictures @ captions.T))
        embedded.append(seconds(lambda: evaluate(Embeddings(pictures, captions), owner)))
    scores = (pictures @ captions.T).numpy()
    counting = min(seconds(lambda: evaluate(scores, owner)) for _ in range(repeats))
    start = time.perf_counter()
    expected = recalls_by_sorting(scores)
    sorting = time.perf_counter() - start
    metrics = evaluate(scores, owner)
    assert np.allclose([metrics[name] for name in STATISTICS[:-1]], expected)
    print(
        f"{images} images x {images * 5} captions, float32, {torch.get_num_threads()} threads, products "
        f"{torch.get_float32_matmul_precision()}"
    )
    alone = f"product alone, d = {dim}"
    times = {
        "released code's sorting loops, from scores": sorting,
        "counting, from scores": counting,
        alone: min(product),
        "product and counting, from embeddings": min(embedded),
    }
    numbers.keep("ranking", RATIOS, report_ratios(times, alone))
    print(
        f"  {extra:.0f} MB above the inputs; the product alone keeps {scores.nbytes / 1e6:.0f} MB"
    )


def measure_large(images: int, dim: int, products: str) -> None:
    """Embeddings on disk to metrics, in a process of its own, so that its memory is all that it
    takes.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, "images.npy"), Path(folder, "captions.npy")]
        for path, side in zip(paths, noisy_pairs(images, dim), strict=True):
            np.save(path, side.numpy())
        with new_process() as one:
            took, peak = one.submit(_evaluate_files, paths, images, products).result()
    print(
        f"{images} images x {images * 5} captions from disk, d = {dim}, {torch.get_num_threads()} threads"
    )
    print(
        f"  to metrics    {took:8.0f} s   {peak / 1e6:.0f} MB at most, the process and its mapped files"
    )


def _evaluate_files(paths: list[Path], images: int, products: str) -> tuple[float, int]:
    torch.set_float32_matmul_precision(products)
    with tqdm(total=images, unit="image", desc="rank") as bar:
        took = seconds(
            lambda: evaluate(
                Embeddings(*paths),
                consecutive_captions((images, images * 5)),
                progress=lambda rows: bar.update(rows - bar.n),
            )
        )
    return took, high_water_mark()


def measure_on_workers(images: int, dim: int, workers: int) -> None:
    """The same on workers: their memory, what is sent to each, and this process's time."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, "images.npy"), Path(folder, "captions.npy")]
        for path, side in zip(paths, noisy_pairs(images, dim), strict=True):
            np.save(path, side.numpy())
        with (
            cluster.local(workers, 1) as place,
            counted_on(place),
            tqdm(total=images, unit="image") as bar,
        ):
            took = seconds(
                lambda: evaluate(
                    Embeddings(*paths),
                    consecutive_captions((images, images * 5)),
                    progress=lambda rows: bar.update(rows - bar.n),
                )
            )
            peaks = place.client.run(high_water_mark)
    print(
        f"{images} images x {images * 5} captions from disk, d = {dim}, {workers} workers of one thread"
    )
    print(
        f"  to metrics    {took:8.0f} s   {max(peaks.values()) / 1e6:.0f} MB at most in a worker, with its mapped "
        f"files; {high_water_mark() / 1e6:.0f} MB here"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--large-images", type=int, default=100_000, help="five captions each, d = 256"
    )
    parser.add_argument(
        "--products",
        choices=["highest", "medium"],
        default="highest",
        help="torch's float32 matmul precision",
    )
    parser.add_argument(
        "--skip-large", action="store_true", help="leave out the large one, some minutes"
    )
    parser.add_argument("--workers", type=int, help="the large one alone, on so many workers")
    given = parser.parse_args()
    torch.set_float32_matmul_precision(given.products)
    if given.workers:
        measure_on_workers(given.large_images, 256, given.workers)
        return
    compare_loops(given.images, given.dim, given.repeats)
    if not given.skip_large:
        measure_large(given.large_images, 256, given.products)


if __name__ == "__main__":
    main()

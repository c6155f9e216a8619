"""How work on images grows with their number, on tiny features and tiny heads: at a slope of 1 ten
times the images take ten times as long. Exits 1 if a step of 20 CPU-seconds or more has a slope
above 1.15 or takes six times as long as a plain loop over the captions on the same machine, if a
dry run of 2 s or more takes half as long as the loop, or if a step takes 2 GB. A shorter step
may be a sort: its slope is higher beyond the processor's cache. The slope of reading photographs
is not judged: a million files are more than the system keeps in memory.

    python -m benchmarks.slopes
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import math
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from benchmarks import numbers
from pipeline.foundation import artefacts, settings
from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.retrieval.nearest import Exact
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.remembered import SETTLED
from pipeline.foundation.manifest import Manifest, build, with_checksums
from pipeline.foundation.manifest.statistics import statistics_of
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.requests import EmbedRequest, ScoreRequest
from pipeline.judge.systems.scores import layout
from pipeline.judge.systems.scores.system import System
from pipeline.make import training
from pipeline.make.features import extraction
from pipeline.make.features.extraction import worker
from pipeline.make.features.extraction.extraction_job import EngineDescription
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.store import FeatureStore, Shard, making, plan, verify, write_shard
from pipeline.make.features.store.layout import DONE
from pipeline.make.features.store.rewrite import rewrite
from pipeline.make.training import made_of_head
from stages import search

MOST, MEMORY = 1.15, 2000
SECONDS, SECONDS_DRY = 20.0, 2.0
LOOPS, LOOPS_DRY = 6.0, 0.5
PLAIN = "plain loop: captions read and split"
DRY_RUN = "dry run of an extraction"
PHOTOGRAPHS = "photographs: read all, their checksums"
SHARD = 1000
ENGINE = EngineDescription(
    name="tiny",
    reported_as="tiny",
    depends_on_id=False,
    version=1,
    items=1,
    dimension=4,
    extras={},
    trained=True,
    weights="w",
    settings={},
    backend="torch",
)
SMALL = tuple(
    f"training.sample.{change}"
    for change in (
        "dimension=4",
        "word_dimension=4",
        "batch_size=16",
        "epochs=1",
        "decay_epoch=1",
        "steps=20",
    )
)


class Cost(NamedTuple):
    """What a step took."""

    seconds: float  # of the CPU
    megabytes: int  # at most, with 600 of imported libraries


Costs = dict[str, Cost]


def described(images: range) -> Manifest:
    """Five captions an image; the first thousand images are val and test."""
    ids = np.arange(images.start, images.stop)
    once = pd.DataFrame(
        {
            "image_id": ids,
            "file": [f"{name:08d}.jpg" for name in images],
            "bytes": 1,
            "split": np.where(ids < 500, "val", np.where(ids < 1000, "test", "train")),
            "caption_id": 0,
            "caption": [f"a photograph of {name % 997} by {name % 1009}" for name in images],
        }
    )
    table = once.take(np.repeat(np.arange(len(ids)), 5)).reset_index(drop=True)
    return Manifest(
        table.assign(caption_id=np.arange(5 * images.start, 5 * images.stop)),
        "sample",
        Path("images"),
    )


def extracted(asked: extraction.ExtractionJob) -> None:
    """Shards as an extraction writes them, of features that are the same for all images."""
    sources = asked.sources()
    wanted, made_from = (
        replace(asked.wanted(ENGINE, sources), files=None),
        digest(asked.fingerprint(ENGINE, sources)),
    )
    with making(asked.store, wanted, plan(asked.store, wanted)) as (store, todo):
        for number in todo.pending:
            shard = Shard.empty(todo.layout, number)
            for name, value in {
                "features": 1,
                "counts": 1,
                "sizes": 8,
                "bytes": 1,
                "status": DONE,
            }.items():
                shard.arrays[name][:] = value
            shard.sources = {row: f"{row:032x}" for row in shard.rows}
            write_shard(store, todo.layout, shard, made_from)


class NoNetwork:
    """Stands for the worker of a dry run, whose network would be loaded and timed."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return ENGINE if function is worker.describe_engine else (1, 0.1)


@dataclass(frozen=True)
class Project:
    """A folder with the files that the steps leave for each other."""

    images: int
    folder: Path

    @cached_property
    def paths(self) -> Paths:
        return Paths(self.folder)

    @cached_property
    def manifest(self) -> Manifest:
        return Manifest.load(self.paths.manifest("sample"))

    @property
    def store(self) -> Path:
        return self.paths.features("sample", "grid")

    def job(self, manifest: Manifest | None = None) -> extraction.ExtractionJob:
        engine = extraction.EngineSpec("grid", {}, Runtime())
        return extraction.ExtractionJob(
            manifest or self.manifest, Path("images"), self.store, engine, 32, SHARD
        )

    def annotate(self) -> None:
        """Photographs of a few bytes, and annotations of them, five captions each, written some at
        a time.
        """
        (self.folder / "images").mkdir()
        with (
            (self.folder / "karpathy.json").open("w") as tree,
            (self.folder / "captions.csv").open("w") as rows,
        ):
            tree.write('{"images": [')
            rows.write("image,caption\n")
            for image in range(self.images):
                (self.folder / "images" / f"{image:08d}.jpg").write_bytes(b"%d" % image)
                captions = [
                    f"a photograph of {image % 997} by {image % 1009} and {image + each}"
                    for each in range(5)
                ]
                sentences = [
                    {"raw": caption, "tokens": caption.split(), "sentid": 5 * image + number}
                    for number, caption in enumerate(captions)
                ]
                tree.write(
                    ", " * bool(image)
                    + json.dumps(
                        {
                            "imgid": image,
                            "filename": f"{image:08d}.jpg",
                            "split": "train",
                            "sentences": sentences,
                        }
                    )
                )
                rows.writelines(f'{image:08d}.jpg,"{caption}"\n' for caption in captions)
            tree.write("]}")
        time.sleep(
            SETTLED / 1e9
        )  # checksums of younger files are not kept, and no one can set back a file's ctime

    def plain_loop(self) -> None:
        """What every other step is compared with."""
        found: dict[str, list[list[str]]] = {}
        with (self.folder / "captions.csv").open(newline="") as rows:
            for image, caption in csv.reader(rows):
                found.setdefault(image, []).append(caption.split())
        assert len(found) == self.images + 1  # with the header

    def from_csv(self) -> None:
        """What `pipeline manifest` does, but for the photographs' checksums."""
        self._save(build("sample", self.folder / "images", self.folder / "captions.csv"), "test")

    def photographs(self) -> None:
        """What it does with photographs that are new."""
        with_checksums(Manifest.load(self.folder / "made.parquet"), self.folder / "checksums")

    def from_karpathy(self) -> None:
        """What it does where photographs are known."""
        built = build("sample", self.folder / "images", self.folder / "karpathy.json")
        self._save(with_checksums(built, self.folder / "checksums"), "train")

    def _save(self, built: Manifest, split: str) -> None:
        made = built.save(self.folder / "made.parquet")
        assert made.digest
        assert statistics_of(made)[split].images == self.images

    def write_manifest(self) -> None:
        described(range(self.images)).save(self.paths.manifest("sample"))
        self.paths.remembered("sample").mkdir()

    def digests(self) -> None:
        assert self.manifest.digest != self.manifest.images_digest

    def dry_run(self) -> None:
        found = extraction.estimate(self.job(), NoNetwork())  # type: ignore[arg-type]
        assert found.images == self.images

    def tasks(self) -> None:
        asked = self.job()
        sources = asked.sources()
        todo = plan(asked.store, asked.wanted(ENGINE, sources))
        assert (
            sum(len(task.sources) for task in asked.tasks(ENGINE, sources, todo, asked.store))
            == self.images
        )

    def write(self) -> None:
        extracted(self.job())

    def verify(self) -> None:
        assert not [fault for _, faults in verify.verify(self.store) for fault in faults]

    def content(self) -> None:
        FeatureStore(self.store).require(self.manifest).content(np.arange(self.images))

    def growth(self) -> None:
        grown = self.job(described(range(self.images // 2, self.images + self.images // 2)))
        sources = grown.sources()
        todo = plan(grown.store, replace(grown.wanted(ENGINE, sources), files=None))
        for task in grown.tasks(ENGINE, sources, todo, grown.store):
            assert task.sources
        assert todo.count == self.images // 2

    def rewrite(self) -> None:
        rewrite(self.store, self.manifest, shard_images=SHARD // 2)

    def train(self) -> None:
        """Twenty batches."""
        known = settings.load(Path(__file__).parents[1] / "params.yaml", SMALL)
        recipe = known.recipe("vse_infty")
        training.train(
            training.TrainingJob(
                self.manifest,
                FeatureStore(self.store).require(self.manifest),
                "grid",
                "bigru",
                "vse_infty",
                recipe,
                known.training_of("sample"),
                0,
                self.paths.head("sample", "tiny"),
            )
        )

    def score(self) -> None:
        """The split test, which has 500 images at any size."""
        opened = self._opened()
        split, rows = opened.split("test"), np.arange(500, 1000)
        vectors = opened.head.embed(opened.source, split, 128)
        made = made_of_head.of_rows(
            opened.head.artefact, opened.manifest, opened.source, ["test"], rows
        )
        path, request = (
            self.paths.similarity("sample", "tiny", "test"),
            ScoreRequest(name="tiny", split="test"),
        )
        with artefacts.making(path, request, {}) as draft:
            assert draft is not None
            layout.write(draft, [retrieval.Embeddings(*vectors)], split, made)

    def embed(self) -> None:
        """All images and captions in pieces, with invented vectors instead of a network's."""
        opened = self._opened()
        part = opened.split("train")
        made = made_of_head.made_from(opened.head.artefact, opened.manifest, opened.source, [part])
        with (
            artefacts.making(self.folder / "v.zarr", EmbedRequest(splits=["train"]), {}) as draft,
            layout.writing_vectors(draft, [part], 4, made) as (images, captions),
        ):  # type: ignore[arg-type]
            for piece in training.pieces.with_captions(part):
                images[piece.images] = captions[piece.captions[:1]] = 0.5
                assert all(part.captions[piece.captions])

    def _opened(self) -> training.OpenHead:
        return training.OpenHead.open(
            training.HeadUse(self.paths, self.paths.head("sample", "tiny"), "sample")
        )

    def search(self) -> None:
        store = System.open_vectors(self.folder / "v.zarr")
        found = Exact(store.vectors("caption")).top(np.ones((3, 4), np.float32), 10)
        assert [len(hits) for hits in search._hits(self.manifest, store, True, *found)] == [10] * 3

    def audit(self) -> None:
        from pipeline.extensions.audit import fingerprints

        looks = np.random.default_rng(0).integers(0, 2**64, (self.images, 4), dtype=np.uint64)
        looks[::100] = looks[1::100]
        prints = fingerprints.Fingerprints([""] * self.images, looks, np.ones(self.images, bool))
        assert sum(1 for _ in fingerprints.alike(prints, prints, 16, True)) == self.images // 100


STEPS: dict[str, Callable[[Project], None]] = {
    PLAIN: Project.plain_loop,
    "manifest: from a CSV": Project.from_csv,
    PHOTOGRAPHS: Project.photographs,
    "manifest: from Karpathy's JSON, photographs known": Project.from_karpathy,
    "manifest: write": Project.write_manifest,
    "manifest: read, digests": Project.digests,
    DRY_RUN: Project.dry_run,
    "plan of an extraction, and its tasks": Project.tasks,
    "shards: write": Project.write,
    "shards: verify": Project.verify,
    "store: open, content of all images": Project.content,
    "plan of a growth by half, and its tasks": Project.growth,
    "store: rewrite": Project.rewrite,
    "train a head, 20 batches": Project.train,
    "score 500 images": Project.score,
    "embed all, without the network": Project.embed,
    "search, three queries": Project.search,
    "audit: photographs alike": Project.audit,
}


def _cost(step: Callable[[Project], None], project: Project) -> Cost:
    torch.set_num_threads(1)
    begin = time.process_time()
    step(project)
    return Cost(
        time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000
    )


def work(images: int, folder: Path) -> Costs:
    """What each step takes, in a process of its own.

    Python's garbage collector visits only objects that the step makes: visiting those of all
    imported libraries takes 0.15 s, at 10,000 images not once, and would look like a steep slope.
    """
    found: Costs = {}
    Project(images, folder).annotate()
    gc.collect()
    gc.freeze()
    for name, step in STEPS.items():
        with multiprocessing.get_context("fork").Pool(1) as process:
            found[name] = process.apply(_cost, (step, Project(images, folder)))
    return found


def slopes(one: Costs, other: Costs, factor: float) -> dict[str, float]:
    """Steps that take less than 0.1 s of more images say nothing."""
    return {
        name: math.log(max(cost.seconds, 1e-9) / max(one[name].seconds, 1e-9), factor)
        if cost.seconds > 0.1
        else 0.0
        for name, cost in other.items()
    }


def _wrong(name: str, cost: Cost, slope: float, plain: float) -> str:
    """What is wrong with a step, "" if nothing is; `plain`: CPU-seconds of the plain loop."""
    least, loops = (SECONDS_DRY, LOOPS_DRY) if name == DRY_RUN else (SECONDS, LOOPS)
    if slope > MOST and cost.seconds >= SECONDS and name != PHOTOGRAPHS:
        return " too steep"
    if cost.seconds >= max(least, loops * plain):
        return " too long"
    return " too much memory" if cost.megabytes > MEMORY else ""


def main(sizes: list[int], measure: Callable[[int, Path], Costs] = work) -> bool:
    """Print CPU seconds at each size, the slope from the one before the last to the last, and the
    most memory; whether all are good.
    """
    found = []
    for images in sizes:
        with tempfile.TemporaryDirectory() as folder:
            found.append(measure(images, Path(folder)))
    steep = slopes(found[-2], found[-1], sizes[-1] / sizes[-2])
    wrong = {
        name: _wrong(name, found[-1][name], slope, found[-1][PLAIN].seconds)
        for name, slope in steep.items()
    }
    print(
        f"{'CPU-s':52s}", *(f"{images:>12,}" for images in sizes), f"{'slope':>8s}", f"{'MB':>8s}"
    )
    for name, slope in steep.items():
        print(
            f"{name:52s}",
            *(f"{each[name].seconds:12.2f}" for each in found),
            f"{slope:8.2f}",
            f"{found[-1][name].megabytes:8d}{wrong[name]}",
        )
    columns = [
        ("step", ""),
        *((f"{images:,}", ",.2f") for images in sizes),
        ("slope", ".2f"),
        ("MB", ",d"),
    ]
    numbers.keep(
        "slopes",
        columns,
        [
            [
                name,
                *(each[name].seconds for each in found),
                slope or None,
                found[-1][name].megabytes,
            ]
            for name, slope in steep.items()
        ],
    )
    return not any(wrong.values())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    sys.exit(0 if main(parser.parse_args().sizes) else 1)

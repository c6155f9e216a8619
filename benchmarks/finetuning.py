"""Which weights of a dual encoder to train on: projections, last blocks or adapters, from the same
start.

The start is a folder of docs/examples/two_towers.py whose projections were trained. Every choice
continues from it for as many steps, at two learning rates. Val selects the epoch and the rate; what
it selects is measured once on test.

    python -m benchmarks.finetuning MODEL ROOT START_STEPS STEPS BATCH
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks import numbers
from pipeline.foundation import settings
from pipeline.foundation.evaluation.metrics import STATISTICS, Metrics, evaluate
from pipeline.foundation.evaluation.retrieval import Embeddings
from pipeline.foundation.evaluation.statistics import compare, intervals
from pipeline.foundation.manifest import Manifest
from pipeline.make import dual_encoders, training
from pipeline.make.dual_encoders.base import Usage
from pipeline.make.dual_encoders.embedding import embed_part
from pipeline.make.dual_encoders.tuning.course import TuningCourse
from pipeline.make.dual_encoders.tuning.job import TuningJob
from pipeline.make.training import checkpoint
from pipeline.make.training.artefact import BEST

RATES = {"projections": (1e-3, 3e-4), "blocks": (3e-4, 3e-5), "lora": (1e-3, 3e-4)}
EPOCHS = 2
RSUM = next(statistic for statistic in STATISTICS if str(statistic) == "RSUM")
COLUMNS = (
    ("trained", ""),
    ("weights", ",.0f"),
    ("rate", ""),
    ("val RSUM", ".1f"),
    ("test RSUM", ".1f"),
    ("95 % interval", ""),
    ("against the start", ""),
    ("CPU-seconds", ".0f"),
)


def tuned(
    manifest: Manifest, model: str, recipe: str, rate: float, steps: int, batch: int, folder: Path
) -> TuningJob:
    """Train, unless it is up to date."""
    section = f"finetuning.{recipe}"
    changes = {
        "learning_rate": rate,
        "epochs": EPOCHS,
        "steps": steps,
        "batch_size": batch,
        "batch_norm": "fixed",
    }
    chosen = settings.load(
        Path("params.yaml"), tuple(f"{section}.{key}={value}" for key, value in changes.items())
    )
    job = TuningJob(
        model, manifest, manifest.images_folder, recipe, chosen.finetuning[recipe], 0, folder
    )
    training.train(
        job,
        on_epoch=lambda row: print(
            folder.name, f"{row['loss']:.3f} val {row['RSUM']:.1f}", flush=True
        ),
        course=TuningCourse,
    )
    return job


def on_test(job: TuningJob) -> Metrics:
    """Measure a tuned encoder on the split test."""
    test = job.manifest.split("test")
    encoder = dual_encoders.load(f"tuned:{job.folder}", Usage())
    files = job.manifest.gallery(job.images, test.store_rows.tolist())
    vectors = embed_part(encoder, files, test.captions.tolist(), 64)
    return evaluate(Embeddings(vectors.images, vectors.captions), test.caption_image)


def row(
    name: str, job: TuningJob, rate: float, val: float, seconds: float | None, start: Metrics | None
) -> tuple[list[object], Metrics]:
    """A row of the table, and what was measured."""
    metrics = on_test(job)
    bounds = intervals(metrics)[RSUM]
    against = ""
    if start is not None:
        change = compare(start, metrics)[RSUM].difference
        against = f"{change.value:+.1f} [{change.low:+.1f}, {change.high:+.1f}]".replace("-", "−")
    weights = sum(value.numel() for value in checkpoint.load_tensors(job.folder / BEST)[0].values())
    return [
        name,
        weights,
        f"{rate:g}",
        val,
        metrics[RSUM],
        f"{bounds.low:.1f} to {bounds.high:.1f}",
        against,
        seconds,
    ], metrics


def main(model: str, root: str, start_steps: str, steps: str, batch: str) -> None:
    """Train all, and print the table."""
    manifest, folder = (
        Manifest.load(Path(root) / "data" / "flickr8k.parquet"),
        Path(root) / "encoders" / "flickr8k",
    )

    def trained(
        base: str, recipe: str, rate: float, count: str, name: str
    ) -> tuple[float, float | None, TuningJob]:
        began, existed = time.process_time(), (folder / name).exists()
        job = tuned(manifest, base, recipe, rate, int(count), int(batch), folder / name)
        state = checkpoint.state(job.folder)
        return (
            state.history[state.best - 1]["RSUM"],
            None if existed else time.process_time() - began,
            job,
        )

    val, seconds, job = trained(model, "projections", 1e-3, start_steps, "start")
    first, start = row("the start: projections", job, 1e-3, val, seconds, None)
    rows = [first]
    for recipe, rates in RATES.items():
        found = [
            (*trained(f"tuned:{job.folder}", recipe, rate, steps, f"{recipe}-{rate:g}"), rate)
            for rate in rates
        ]
        val, seconds, best, rate = max(found, key=lambda each: each[0])
        rows.append(row(f"{recipe}, {steps} more steps", best, rate, val, seconds, start)[0])
        print(rows[-1], flush=True)
    numbers.keep("finetuning", COLUMNS, rows)
    print(numbers.table([name for name, _ in COLUMNS], numbers.shown(COLUMNS, rows)))


if __name__ == "__main__":
    main(*sys.argv[1:])

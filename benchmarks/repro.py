"""How long an unchanged `dvc repro` takes where data, features, heads and similarities have COCO's
size, or another.

    python -m benchmarks.repro --folder FOLDER

Photographs and features are made up, of a few bytes each, in as many files.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import yaml

from benchmarks.slopes import extracted
from pipeline.foundation import settings
from pipeline.foundation.files.parsing import from_yaml
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.settings.paths import Paths, heads, systems
from pipeline.foundation.settings.written import template
from pipeline.make.features.extraction import EngineSpec, ExtractionJob
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.project import new

HEAD = (
    "best.safetensors",
    "last.safetensors",
    "history.csv",
    "record.json",
    "steps.csv",
    "text/vocabulary.json",
)
CHUNKS = 400  # of a matrix of 5,000 x 25,000


def photographs(folder: Path, images: int) -> None:
    """Files of a few bytes, and Karpathy's annotations of them, five captions each."""
    entries = []
    for number in range(images):
        place = f"{'train' if number >= 10_000 else 'val'}2014"
        file = folder / "images" / place / f"COCO_{place}_{number:012d}.jpg"
        if number in (0, 10_000):
            file.parent.mkdir(parents=True)
        file.write_bytes(b"%d" % number)
        captions = [
            {"raw": f"a photograph of {number}", "sentid": 5 * number + each} for each in range(5)
        ]
        entries.append(
            {
                "filepath": place,
                "filename": file.name,
                "cocoid": number,
                "imgid": number,
                "sentences": captions,
                "split": "train" if number >= 10_000 else "test" if number >= 5000 else "val",
            }
        )
    (folder / "dataset_coco.json").write_text(json.dumps({"images": entries}))


def files(folder: Path, names: list[str]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def make(folder: Path, images: int) -> None:
    """A project as `dvc repro` leaves it."""
    params = from_yaml(template("params.yaml").read_text(encoding="utf-8"))
    params["run"]["dataset"] = "coco"
    new.write(folder, {"params.yaml": yaml.safe_dump(params)})
    known, paths = settings.load(folder / "params.yaml"), Paths(folder)
    photographs(folder / "data" / "coco", images)
    files(folder / "data" / "sample", ["dataset_sample.json"])
    run(folder, "pipeline", "manifest")
    manifest = Manifest.load(paths.manifest("coco"))
    for feature in known.run.features:
        extracted(
            ExtractionJob(
                manifest,
                manifest.images_folder,
                paths.features("coco", feature),
                EngineSpec("grid", {}, Runtime()),
                32,
                known.extract.shard_images,
            )
        )
    for name in heads(known.run):
        files(paths.head("coco", name), [*HEAD])
    for name in systems(known.run):
        files(
            paths.similarity("coco", name, "test"),
            [f"similarity/c/{each // 20}/{each % 20}" for each in range(CHUNKS)],
        )
    files(
        folder,
        [
            "embeddings/coco/none",
            *(
                f"results/{name}"
                for name in (
                    "headline/a.json",
                    "metrics.json",
                    "throughput.json",
                    "tables/a.tex",
                    "figures/a.pdf",
                    "report.html",
                    "curves/RSUM/a.csv",
                    "curves/negatives/a.csv",
                )
            ),
        ],
    )
    run(folder, "pipeline", "lab", "plan")
    run(folder, "dvc", "commit", "--force", "--quiet")


def run(folder: Path, command: str, *arguments: str) -> float:
    """CPU seconds of a command and what it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(
        [Path(sys.executable).parent / command, *arguments], cwd=folder, env=environment, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=123_287)
    parser.add_argument("--folder", type=Path, required=True)
    asked = parser.parse_args()
    if not asked.folder.exists():
        make(asked.folder, asked.images)
    for command in (("dvc", "repro"), ("pipeline", "lab", "plan"), ("pipeline", "manifest")):
        print(" ".join(command), f"{run(asked.folder, *command):.1f} CPU-s")

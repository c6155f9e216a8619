"""Memory stays flat: three times the images, the same peak."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXTRACT = """
import re, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from pipeline.foundation import manifest
from pipeline.make.features import extraction
from pipeline.make.features.extractors import Runtime
engine = extraction.EngineSpec("grid", {"network": "test_efficientnet", "weights": "untrained", "image_size": 32,
                                       "grid": 1}, Runtime())
for images in map(Path, sys.argv[1:]):
    scenes = manifest.build("many", images, images.with_suffix(".csv"))
    job = extraction.ExtractionJob(scenes, images, images.with_suffix(".zarr"), engine, batch_size=32, shard_images=64)
    assert extraction.extract(job).extracted == int(images.name)
    print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def linked(folder: Path, corpus: Path, count: int) -> Path:
    """A folder of `count` images, which are links to a few, and their captions beside it."""
    images = folder / str(count)
    images.mkdir()
    files = sorted((corpus / "images").iterdir())
    lines = ["image,caption"]
    for number in range(count):
        os.link(files[number % len(files)], images / f"{number}.jpg")
        lines.append(f"{number}.jpg,a scene")
    images.with_suffix(".csv").write_text("\n".join(lines), encoding="utf-8")
    return images


def test_peak_memory_does_not_grow_with_the_images(corpus: Path, tmp_path: Path) -> None:
    """Of one process, the peak in KiB after few images and after many more; rusage's would begin at
    its parent's. In one arena of malloc it differs by less than 0.5 MB from run to run.
    """
    folders = [linked(tmp_path, corpus, count) for count in (64, 192)]
    ran = subprocess.run(
        [sys.executable, "-c", EXTRACT, *folders],
        env=os.environ | {"MALLOC_ARENA_MAX": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    few, many = map(int, ran.stdout.split())
    assert many - few < 1024  # 8 KB an image; its pixels alone are 12 KB

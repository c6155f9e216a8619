"""DVC looks at descriptions and ledgers of stores, which hold digests of all else, and not at a file for each shard."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pipeline.features.project import new

LEFT_OUT = ("data/coco/images/train2014/1.jpg", "data/msrvtt/videos/1.mp4",
            "features/coco/region.zarr/features/c/7/0/0",
            "similarities/coco/a.zarr/similarity/c/0/3", "similarities/coco/val/a.zarr/similarity/c/0/3",
            "embeddings/coco/a.zarr/image_embeddings/c/0/0")
SEEN = ("data/coco.parquet", "data/coco/dataset_coco.json", "data/sample/images/1.png",
        "features/coco/region.zarr/ledger/000007.json", "features/coco/region.zarr/zarr.json",
        "features/coco/region.zarr/image_ids/zarr.json", "similarities/coco/a.zarr/zarr.json",
        "heads/coco/a/best.safetensors")


def test_shards_and_photographs_are_left_out(tmp_path: Path) -> None:
    new.write(tmp_path)
    ran = subprocess.run([Path(sys.executable).parent / "dvc", "check-ignore", *LEFT_OUT, *SEEN], cwd=tmp_path,
                         capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [*LEFT_OUT]


def test_a_manifest_is_looked_at_without_pandas() -> None:
    subprocess.run([sys.executable, "-c", "import sys, pipeline.manifest.build; assert 'pandas' not in sys.modules"],
                   check=True)

"""DVC looks at descriptions and ledgers of stores, which hold digests of all else, and not at a
file for each shard.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.foundation.settings.written import template
from pipeline.make.features.project import new

pytestmark = pytest.mark.slow

LEFT_OUT = (
    "data/coco/images/train2014/1.jpg",
    "data/msrvtt/videos/1.mp4",
    "features/coco/region.zarr/features/c/7/0/0",
    "similarities/coco/a.zarr/similarity/c/0/3",
    "similarities/coco/val/a.zarr/similarity/c/0/3",
    "embeddings/coco/a.zarr/image_embeddings/c/0/0",
)
SEEN = (
    "data/coco.parquet",
    "data/coco/dataset_coco.json",
    "data/sample/images/1.png",
    "features/coco/region.zarr/ledger/000007.json",
    "features/coco/region.zarr/zarr.json",
    "features/coco/region.zarr/ids/zarr.json",
    "similarities/coco/a.zarr/zarr.json",
    "heads/coco/a/best.safetensors",
)


@pytest.mark.parametrize(
    "own", [b"", b"# as `dvc init` makes it\n", b"*.mine\r\n/data/*/images/\r\n", b"gr\xfcn"]
)
def test_lines_of_the_users_own_stay(own: bytes, tmp_path: Path) -> None:
    (tmp_path / ".dvcignore").write_bytes(own)
    new.write(tmp_path)
    found = (tmp_path / ".dvcignore").read_bytes()
    assert found.startswith(own)
    wanted = [*template(".dvcignore").read_bytes().splitlines(), *own.splitlines()]
    assert sorted(found.splitlines()) == sorted({*wanted})


@pytest.mark.parametrize("own", [None, b"*.mine\r\n/data/*/images/\r\n"])
def test_shards_and_photographs_are_left_out(own: bytes | None, tmp_path: Path) -> None:
    if own is not None:
        (tmp_path / ".dvcignore").write_bytes(own)
    new.write(tmp_path)
    ran = subprocess.run(
        [Path(sys.executable).parent / "dvc", "check-ignore", *LEFT_OUT, *SEEN],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == [*LEFT_OUT]


def test_a_manifest_is_looked_at_without_pandas() -> None:
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, pipeline.foundation.manifest.build; assert 'pandas' not in sys.modules",
        ],
        check=True,
    )

"""A full disk, a target that cannot be written: one line, nothing lost, and the same command goes
on.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from folders import tree
from preloaded import Commands

from pipeline.foundation.artefacts import record as records
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import counted
from pipeline.make.features.extraction.extract import overlapped

pytestmark = pytest.mark.slow

PARAMS = Path(__file__).parents[3] / "params.yaml"
TINY = [
    "-S",
    "features.light.grid={engine: grid, network: test_efficientnet, weights: untrained, image_size: 64, grid: 2}",
    "-S",
    "extract.shard_images=5",
    "-S",
    "extract.backend=torch",
]
Extract = Callable[..., subprocess.CompletedProcess[str]]
# Modes of files and folders hold for root too, as they do for everybody else: CAP_DAC_OVERRIDE is
# dropped.
BOUND_BY_MODES = """
import ctypes
header, held = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
ctypes.CDLL(None).capget(header, held)
for kind in (0, 1):  # what is effective, and what is permitted
    held[kind] &= ~(1 << 1)
ctypes.CDLL(None).capset(header, held)
"""
# a shard has some 10 KB
SMALL_DISK = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))"


@pytest.fixture
def extract(root: Path, commands: Commands) -> Extract:
    """Run the command."""
    return partial(
        commands,
        "pipeline",
        "extract",
        "--feature",
        "grid",
        "--root",
        root,
        "--params",
        PARAMS,
        *TINY,
    )


@pytest.fixture
def root(scenes: Manifest, tmp_path: Path) -> Path:
    scenes.save(tmp_path / "data" / "sample.parquet")
    return tmp_path


def last_line(ran: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in ran.stderr
    return ran.stderr.strip().splitlines()[-1]


def test_a_full_disk(root: Path, extract: Extract) -> None:
    cut = extract(BEFORE=SMALL_DISK, code=1)
    assert "File too large" in last_line(cut)
    assert "run again" in last_line(cut)
    assert "grid.zarr" in last_line(cut)
    assert "24 images extracted" in extract().stdout
    extract("--out", root / "whole.zarr")
    resumed, whole = tree(root / "features" / "sample" / "grid.zarr"), tree(root / "whole.zarr")
    for files in (resumed, whole):
        del files["record.json"]  # it has the time of the run
    assert resumed == whole


def test_a_dry_run_of_a_finished_store_says_at_once_that_nothing_is_to_do(extract: Extract) -> None:
    extract()
    again = extract("--dry-run")
    assert (again.stdout.count("nothing to do"), again.stderr) == (1, "")


def test_a_target_that_cannot_be_written(extract: Extract) -> None:
    ran = extract("--out", "/proc/grid.zarr", code=None)  # nobody can write there, not even root
    assert ran.returncode in (1, 2)
    assert "/proc" in last_line(ran)


def test_dry_run_says_what_it_would_take(root: Path, extract: Extract) -> None:
    ran = extract("--dry-run")
    assert ran.stderr.startswith("extract grid: loading the network")
    for part in (
        "grid2-test_efficientnet",
        "24 of 24 images, in 5 shards",
        "free",
        f" with 1 worker on {counted(len(os.sched_getaffinity(0)), 'core')}, an estimate; ",
        "measured now on ",
        " s each, without loading the network",
        "untrained",
    ):
        assert part in ran.stdout
    assert not (root / "features").exists()


@pytest.mark.parametrize(
    ("decoders", "threads", "cores", "seconds"),
    [
        (2, 1, 2, 0.3),  # the network is waited for
        (2, 2, 2, 0.4),  # both cores are busy: 0.2 s of decoding and 2 x 0.3 s of the network
        (2, 1, 0.5, 1.0),  # four workers on two cores have half a core each
        (2, 0, 8, 0.3),  # the network has a GPU
        (1, 0, 0.5, 0.4),
    ],
)
def test_an_estimate_is_of_work_at_the_same_time_on_the_cores_that_there_are(
    decoders: int, threads: int, cores: float, seconds: float
) -> None:
    assert overlapped(0.2, 0.3, decoders, threads, cores) == pytest.approx(seconds)


def test_workers_and_a_scheduler_do_not_go_together(extract: Extract) -> None:
    assert "give one" in last_line(
        extract("--workers", "2", "--scheduler", "tcp://127.0.0.1:1", code=2)
    )


def test_a_finished_store_in_a_folder_that_cannot_be_written_needs_nothing(
    root: Path, extract: Extract
) -> None:
    assert "24 images extracted" in extract().stdout
    store = root / "features" / "sample" / "grid.zarr"
    records.update(store, finished=False)  # so that the network is loaded and the store compared
    before = tree(store)
    folders = [store.parent, store, *(path for path in store.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        ran = extract(BEFORE=BOUND_BY_MODES)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert "nothing to do" in ran.stdout
    assert tree(store) == before

"""A full disk, a target that cannot be written: one line, nothing lost, and the same command goes on."""

from __future__ import annotations

import ctypes
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from folders import tree

from pipeline.manifest import Manifest

PARAMS = Path(__file__).parents[2] / "params.yaml"
TINY = ["-S",
        "features.light.grid={engine: grid, network: test_efficientnet, weights: untrained, image_size: 64, grid: 2}",
        "-S", "extract.shard_images=5"]


PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1  # of linux/prctl.h and linux/capability.h


def extract(root: Path, *arguments: str, file_size: int | None = None, bound_by_modes: bool = False
            ) -> subprocess.CompletedProcess[str]:
    """Run the command.

    file_size: No file that it writes may grow beyond so many bytes.
    bound_by_modes: Whether modes of files and folders hold for root too, as they do for everybody else.
    """
    library = ctypes.CDLL(None)

    def limit() -> None:
        if bound_by_modes:
            library.prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)  # refused where it was not held
        if file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))

    return subprocess.run([sys.executable, "-m", "stages.cli", "extract", "--feature", "grid", "--root", str(root),
                           "--params", str(PARAMS), *TINY, *arguments], capture_output=True, text=True,
                          preexec_fn=limit, timeout=300)


@pytest.fixture
def root(scenes: Manifest, tmp_path: Path) -> Path:
    scenes.save(tmp_path / "data" / "sample.parquet")
    return tmp_path


def last_line(ran: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in ran.stderr
    return ran.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("workers", [[], ["--workers", "2"]])
def test_a_full_disk(root: Path, workers: list[str]) -> None:
    cut = extract(root, *workers, file_size=9000)  # a shard of features has some 10 KB
    assert cut.returncode == 1
    assert "File too large" in last_line(cut)
    assert "run again" in last_line(cut)
    again = extract(root)
    assert "24 images extracted" in again.stdout
    whole = extract(root, "--out", str(root / "whole.zarr"))
    assert whole.returncode == 0
    assert tree(root / "features" / "sample" / "grid.zarr") == tree(root / "whole.zarr")


def test_a_target_that_cannot_be_written(root: Path) -> None:
    ran = extract(root, "--out", "/proc/grid.zarr")  # nobody can write there, not even root
    assert ran.returncode in (1, 2)
    assert "/proc" in last_line(ran)


def test_dry_run_says_what_it_would_take(root: Path) -> None:
    ran = extract(root, "--dry-run")
    assert ran.returncode == 0
    for part in ("grid2-test_efficientnet", "24 of 24 images, in 5 shards", "free", "s an image", "untrained"):
        assert part in ran.stdout
    assert not (root / "features").exists()


def test_workers_and_a_scheduler_do_not_go_together(root: Path) -> None:
    ran = extract(root, "--workers", "2", "--scheduler", "tcp://127.0.0.1:1")
    assert ran.returncode == 2
    assert "give one" in last_line(ran)


def test_a_finished_store_in_a_folder_that_cannot_be_written_needs_nothing(root: Path) -> None:
    assert "24 images extracted" in extract(root).stdout
    store = root / "features" / "sample" / "grid.zarr"
    (store / "asked.json").unlink()  # so that the network is loaded and the store compared
    (store.parent / ".grid.zarr.lock").unlink()
    before = tree(store)
    folders = [store.parent, store, *(path for path in store.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        ran = extract(root, bound_by_modes=True)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert (ran.returncode, "nothing to do" in ran.stdout) == (0, True), ran.stderr
    assert tree(store) == before

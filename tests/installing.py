"""Build a project and install what was built, without the network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
Run = Callable[..., subprocess.CompletedProcess[str]]


def released(source: Path, folder: Path) -> Path:
    """Build a project's source distribution and unpack it."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def install(source: Path, target: Path) -> None:
    """Build a project and install what was built, without the network and without what it depends
    on.
    """
    with_wheel = target.with_name(f"{target.name}-wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(with_wheel)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert uv is not None, "`make setup` installs uv"
    (wheel,) = with_wheel.glob("*.whl")
    subprocess.run(
        [
            uv,
            "pip",
            "install",
            "--quiet",
            "--offline",
            "--no-deps",
            "--python",
            sys.executable,
            "--target",
            str(target),
            str(wheel),
        ],
        check=True,
        capture_output=True,
    )

"""The project as a user installs it: built, and put where nothing of the clone is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from installing import ROOT, Run, install, released


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    return released(ROOT, tmp_path_factory.mktemp("released"))


@pytest.fixture(scope="session")
def installed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the source distribution installs; the libraries it needs are this
    environment's.
    """
    target = tmp_path_factory.mktemp("installed") / "site"
    install(source, target)
    return target


@pytest.fixture
def outside(installed: Path, tmp_path: Path) -> Run:
    """Run a command of the installed project in an empty folder; `more` are further folders to
    import from.
    """

    def run(
        *arguments: str | Path, folder: Path = tmp_path, more: tuple[Path, ...] = (), code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(str(each) for each in (installed, *more))
        environment = {
            **os.environ,
            "PYTHONPATH": path,
            "PATH": f"{installed / 'bin'}:{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
        }
        ran = subprocess.run(
            [str(each) for each in arguments],
            cwd=folder,
            env=environment,
            text=True,
            capture_output=True,
            check=False,
            timeout=300,
        )
        assert ran.returncode == code, ran.stdout[-2000:] + ran.stderr[-2000:]
        return ran

    return run

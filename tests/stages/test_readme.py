"""README: every line of its blocks, pasted as it stands after the one before, in a finished run of a small sample."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import given_cpus
import pytest
from preloaded import Commands
from tiny_project import BINARIES

ROOT = Path(__file__).parents[2]
ONE_EPOCH = "sed -Ei 's/(epochs): 30$/\\1: 1/; s/(decay_epoch): 20$/\\1: 1/' params.yaml"
"""The one line that is not README's: the test does not wait for 30 epochs."""
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """README's fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(finished: Path, commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run, with an environment to activate at .venv, as `make repro` leaves it."""
    copy = tmp_path_factory.mktemp("readme") / "clone"
    shutil.copytree(finished, copy)
    binaries = copy / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "activate").write_text(f"export PATH={commands.folder}:{BINARIES}:$PATH\n", encoding="utf-8")
    return copy


def test_every_line_works_after_the_one_before(folder: Path) -> None:
    first, *others = blocks("sh")
    assert re.findall(r"^make (\w+)", first, re.MULTILINE) == ["repro", "test"]  # the run is what the first one made
    assert len(others) >= 7
    script = folder / "pasted.sh"
    lines = "\n".join(others)
    assert lines.count("\ncd mine\n") == 1
    lines = lines.replace("\ncd mine\n", f"\ncd mine\n{ONE_EPOCH}\n")
    script.write_text(f"set -ev\n{lines}", encoding="utf-8")
    needed = ("HOME", "PYTHONPATH", "TMPDIR", *given_cpus.VARIABLES)
    bare = {name: value for name, value in os.environ.items() if name in needed}
    ran = subprocess.run(["bash", script.name], cwd=folder, text=True, capture_output=True, check=False, timeout=600,
                         env={**bare, "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"})
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    assert (folder / "mine" / "results" / "metrics.json").exists()
    assert (folder / "results" / "search.html").exists()


def test_the_lines_of_python_work(folder: Path) -> None:
    block = blocks("python")[0]
    assert len(block.strip().splitlines()) <= 15
    ran = subprocess.run([sys.executable, "-c", block], cwd=folder, text=True, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout.split()[1]) > 400  # RSUM of captions that are their images with little noise


def test_a_head_is_opened_in_three_lines(folder: Path) -> None:
    block = blocks("python")[1]
    ran = subprocess.run([sys.executable, "-c", block], cwd=folder, text=True, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert 0 <= int(ran.stdout) < 24


def test_what_it_says_is_in_a_folder_is_there(folder: Path) -> None:
    named = re.findall(r"`((?:results|docs|manifests|stages|pipeline)/[\w./-]*|\w+\.(?:ya?ml|md|cff))`", README)
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert len(named) > 5 < len(links)
    assert [name for name in [*named, *links] if not (ROOT / name).exists() and not (folder / name).exists()] == []

"""A run as a user has it, on a sample that takes seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from dulwich import porcelain

from pipeline.project import new

ROOT = Path(__file__).parents[2]
BINARIES = Path(sys.executable).parent
TINY = {"network": "test_efficientnet", "weights": "untrained", "image_size": 64}
ABLATIONS = ["vse2ad-noadopt", "vse_infty"]


def make(copy: Path, commands: Path) -> None:
    """Run `dvc repro` in an empty folder, with the settings of such a sample, and commit the run.

    commands: A folder with the `pipeline` that DVC runs.
    """
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    settings["sample"] = {"images": 24, "size": 64, "seed": 0}
    settings["features"]["light"] = {
        "region": {"engine": "pyramid", **TINY, "image_size": 128}, "grid": {"engine": "grid", **TINY, "grid": 2},
        "patch": {"engine": "patch", "network": "test_vit", "weights": "untrained", "image_size": 160, "cls": True}}
    settings["throughput"].update(batch_size=4, pools=[20, 200], pairs=1, repeats=1, seconds=0.0)
    settings["run"]["ablations"] = ABLATIONS
    settings["training"]["sample"].update(dimension=16, word_dimension=8, batch_size=16, epochs=2)
    porcelain.init(copy)  # git itself is not needed
    new.write(copy, {"params.yaml": yaml.safe_dump(settings)})  # as `pipeline init` does
    dvc(copy, "repro", commands=commands)
    porcelain.add(copy, [str(copy / name) for name in ("params.yaml", "dvc.yaml", "dvc.lock", ".gitignore")])
    porcelain.commit(copy, message=b"A run", author=b"A <a@example.org>", committer=b"A <a@example.org>")


def dvc(project: Path, *arguments: str, commands: Path = BINARIES) -> str:
    """Run DVC with the commands of a folder on the path; returns what it printed."""
    ran = _run(project, *arguments, commands=commands)
    return ran.stdout + ran.stderr


def dvc_json(project: Path, *arguments: str) -> Any:
    """What a DVC command prints with --json."""
    return json.loads(_run(project, *arguments, "--json").stdout)


def _run(project: Path, *arguments: str, commands: Path = BINARIES) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{commands}:{BINARIES}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, "-m", "dvc", *arguments], cwd=project, env=environment, text=True,
                         capture_output=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    return ran

"""Without extras: what measures works, and every other command names the extra that it needs, in
one line.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import light
import numpy as np
import pytest
from installing import ROOT
from packaging.requirements import Requirement

from pipeline.foundation.parts.extras import EXTRAS
from pipeline.make.features.project import new
from stages import cli

pytestmark = pytest.mark.slow

# Command -> arguments that come as far as its own check of files. All others are called without
# any.
GIVEN = {
    "audit": ["none", "other"],
    "extract": ["--feature", "grid"],
    "store verify": ["none.zarr"],
    "store rewrite": ["none.zarr", "--dtype", "float16"],
    "store copy": ["none.zarr", "s3://none/none.zarr"],
    "store import": ["folder", "none", "--feature", "grid"],
    "store export": ["scan", "none.zarr", "out"],
    "train": ["--feature", "grid"],
    "convert": ["none.pth"],
    "compare": ["none.npy", "other.npy"],
    "trace": ["results/none.json"],
    "search": ["a dog"],
    "manifest": ["none"],
    "add": ["ours", "--scores", "none.npy"],
    "explain": ["none.npy", "50"],
    "finetune": ["--system", "clip:none"],
    "export": ["none", "--to", "onnx"],
}
# Commands that need an extra only for some of what they do.
SOMETIMES = {"score": "training"}
TRIED = [name for name in cli.commands() if name != "lab sample"]


@pytest.fixture(scope="module")
def python(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return light.make(tmp_path_factory.mktemp("light"), installed)


@pytest.fixture(scope="module")
def answers(python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, str]]:
    folder = tmp_path_factory.mktemp("project")
    new.write(folder)
    commands = [[*name.split(), *GIVEN.get(name, [])] for name in TRIED]
    return dict(zip(TRIED, light.run(python, folder, *commands), strict=True))


@pytest.mark.parametrize("command", TRIED)
def test_every_command_works_or_names_its_extra(
    command: str, answers: dict[str, tuple[Any, str]]
) -> None:
    code, output = answers[command]
    assert code in (0, 2), output
    errors = [line for line in output.splitlines() if line.startswith("error: ")]
    assert len(errors) == (code == 2), output
    extra = cli.extra_of(command) or SOMETIMES.get(command)
    if extra is None:
        assert "pip install" not in "".join(errors)
    else:
        assert output.splitlines() == errors  # before it does anything
        assert re.search(rf" is not installed; run: pip install '\S+\[{extra}\]'$", errors[0])


def test_files_are_measured_and_compared(
    python: Path, tmp_path: Path, rng: np.random.Generator
) -> None:
    images = rng.standard_normal((40, 16)).astype(np.float32)
    captions = np.repeat(images, 5, 0) + rng.standard_normal((200, 16)).astype(np.float32)
    for name, array in (
        ("images", images),
        ("captions", captions),
        ("a", images @ captions.T),
        ("b", images @ np.roll(captions, 3, 1).T),
    ):
        np.save(tmp_path / f"{name}.npy", array)
    asked, matrix, vectors, compared, several = light.run(
        python,
        tmp_path,
        ["--help"],
        ["evaluate", "--system", "a.npy", "--json"],
        ["evaluate", "--embeddings", "images.npy", "captions.npy", "--json", "--run", "x.run"],
        ["compare", "a.npy", "b.npy"],
        ["evaluate", "--system", "a.npy", "--scheduler", "tcp://127.0.0.1:1"],
    )
    assert [code for code, _ in (asked, matrix, vectors, compared)] == [0, 0, 0, 0], (
        matrix,
        vectors,
        compared,
    )
    assert all(f" {name.split()[0]} " in asked[1] for name in cli.commands())
    assert '"R@1"' in matrix[1]
    assert (tmp_path / "x.run").exists()
    assert several[0] == 2
    assert several[1].endswith("[cluster]'\n")


def test_extras_bring_what_is_asked_of_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]

    def brought(extra: str) -> set[str]:
        needs = [Requirement(line) for line in extras[extra]]
        return {re.sub(r"[-_.]+", "_", each.name) for each in needs} | {
            name
            for each in needs
            if each.name == "vse-pipeline"
            for other in each.extras
            for name in brought(other)
        }

    named = {
        "open_clip": "open_clip_torch",
        "PIL": "pillow",
    }
    for extra, packages in EXTRAS.items():
        assert {named.get(package, package) for package in packages} <= brought(extra), extra
    core = {Requirement(line).name for line in project["dependencies"]}
    assert not core & {package for packages in EXTRAS.values() for package in packages}
    assert brought("all") >= {"torch", "transformers", "timm", "distributed", "av"}

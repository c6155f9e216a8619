"""Without extras: what measures works, and every other command names the extra that it needs, in
one line.
"""

from __future__ import annotations

import json
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
    "store export": ["scan", "none.zarr", "--out", "out"],
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
        ("c", images @ captions.T + rng.standard_normal((40, 200))),
        ("d", images @ captions.T + rng.standard_normal((40, 200))),
    ):
        np.save(tmp_path / f"{name}.npy", array)
    asked, matrix, vectors, compared, seeds, repeated, several = light.run(
        python,
        tmp_path,
        ["--help"],
        ["evaluate", "--system", "a.npy", "--json"],
        ["evaluate", "--embeddings", "images.npy", "captions.npy", "--json", "--run", "x.run"],
        ["compare", "a.npy", "b.npy"],
        ["compare", "a.npy,b.npy", "c.npy,d.npy"],
        ["noise", "a.npy", "c.npy"],
        ["evaluate", "--system", "a.npy", "--scheduler", "tcp://127.0.0.1:1"],
    )
    answers = (asked, matrix, vectors, compared, seeds, repeated)
    assert [code for code, _ in answers] == [0] * len(answers), answers
    assert all(f" {name.split()[0]} " in asked[1] for name in cli.commands())
    assert '"R@1"' in matrix[1]
    assert (tmp_path / "x.run").exists()
    assert several[0] == 2
    assert several[1].endswith("[cluster]'\n")


def test_files_of_arrays_and_text_need_no_extra_and_others_name_theirs(
    python: Path, tmp_path: Path, rng: np.random.Generator
) -> None:
    scores = np.repeat(np.eye(20), 5, 1) + rng.standard_normal((20, 100))
    np.save(tmp_path / "a.npy", scores)
    np.savez(tmp_path / "a.npz", scores=scores)
    np.savetxt(tmp_path / "a.csv", scores, delimiter=",")
    lines = []
    judged = []
    listed: dict[str, dict[str, float]] = {}
    for caption, of_images in enumerate(scores.T.tolist()):
        judged.append(f"caption:{caption} 0 image:{caption // 5} 1\n")
        listed[f"caption:{caption}"] = {f"image:{at}": each for at, each in enumerate(of_images)}
        for image, score in enumerate(of_images):
            lines.append(f"caption:{caption} Q0 image:{image} 0 {score!r} ours\n")
    (tmp_path / "a.run").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "a.json").write_text(json.dumps(listed), encoding="utf-8")
    (tmp_path / "a.qrels").write_text("".join(judged), encoding="utf-8")
    (tmp_path / "a.parquet").write_bytes(b"PAR1" * 4)
    judging = ["--qrels", "a.qrels"]
    answers = light.run(
        python,
        tmp_path,
        *(["evaluate", "--system", f"a.{suffix}"] for suffix in ("npy", "npz", "csv")),
        *(["evaluate", "--system", f"a.{suffix}", *judging] for suffix in ("run", "json")),
        ["compare", "a.npy", "a.csv", "--latex"],
        ["compare", "a.run", "a.json", *judging],
        ["explain", "a.npy", "--published", "i2t_R@1=50"],
        ["evaluate", "--system", "a.npy", "--latex"],
        ["evaluate", "--system", "a.parquet"],
        ["compare", "a.npy", "a.csv", "--figure", "drawn.pdf"],
    )
    *without, of_parquet, drawn = answers
    assert [code for code, _ in without] == [0] * len(without), without
    asked = scores.argmax(0) == np.arange(100) // 5  # the right image is first
    number = f"{100 * asked.mean():.1f}"
    assert all(number in output for _, output in without[:5]), number
    for (code, output), needs, extra in (
        (of_parquet, "reading Parquet needs pyarrow", "parquet"),
        (drawn, "drawing needs matplotlib", "drawing"),
    ):
        assert code == 2, output
        line = output.splitlines()[-1]
        assert re.fullmatch(
            rf"error: {needs}, which is not installed; run: pip install '\S+\[{extra}\]'", line
        )


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

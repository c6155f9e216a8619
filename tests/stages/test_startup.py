"""What a command imports: torch alone takes two seconds, and most commands do without it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pipeline.foundation.manifest import Manifest
from stages.cli import COMMANDS, cli

ROOT = Path(__file__).parents[2]
HEAVY = {
    "torch",
    "torchvision",
    "timm",
    "transformers",
    "safetensors",
    "zarr",
    "dask",
    "distributed",
    "pandas",
    "pyarrow",
    "scipy",
    "matplotlib",
    "faiss",
    "PIL",
}
RUN = """
import json, sys
from importlib.machinery import PathFinder
codes, given, before = [], json.loads(sys.argv[1]), set(sys.modules)
lacking, find = sys.argv[2:], PathFinder.find_spec
PathFinder.find_spec = lambda name, *more: None if name.partition(".")[0] in lacking else find(name, *more)
for arguments in given:
    sys.argv = ["pipeline", *arguments]
    try:
        from stages import cli
        cli.main()
    except SystemExit as ended:
        codes.append([ended.code, sorted({name.partition(".")[0] for name in sys.modules if name not in before})])
        before = set(sys.modules)
print(f"\\n{json.dumps(codes)}", file=sys.stderr)
"""


def imported(*commands: tuple[str | Path, ...], lacking: Sequence[str] = ()) -> list[set[str]]:
    """The libraries that each command imports after those before it; all must end well. lacking:
    not installed.
    """
    words = json.dumps([[str(each) for each in arguments] for arguments in commands])
    ran = subprocess.run(
        [sys.executable, "-c", RUN, words, *lacking],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    reported = json.loads(ran.stderr.strip().splitlines()[-1])
    assert [code for code, _ in reported] == [0] * len(commands), ran.stderr
    return [set(libraries) for _, libraries in reported]


@pytest.mark.slow
def test_help_imports_no_library() -> None:
    commands = [("--help",), *((*command.split(), "--help") for command in COMMANDS)]
    for command, libraries in zip(commands, imported(*commands), strict=True):
        assert not libraries & (HEAVY | {"pydantic", "yaml"}), command


@pytest.mark.slow
def test_a_small_matrix_is_measured_without_torch(tmp_path: Path) -> None:
    np.save(tmp_path / "sims.npy", np.random.default_rng(0).normal(size=(4, 20)))
    (libraries,) = imported(("evaluate", "--system", tmp_path / "sims.npy"))
    assert libraries & HEAVY <= {"scipy", "safetensors"}


def test_a_store_is_measured_without_torch(trained: Path) -> None:
    store = trained / "similarities" / "sample" / "vse2ad-region-bigru-s0.zarr"
    (libraries,) = imported(("evaluate", "--system", store))
    assert libraries & HEAVY <= {"zarr", "scipy", "safetensors"}


def test_given_scores_are_added_measured_and_put_into_tables_without_torch(
    scenes: Manifest, tmp_path: Path
) -> None:
    scenes.save(tmp_path / "data" / "sample.parquet")
    split = scenes.split("test")
    scores = np.random.default_rng(0).normal(size=(len(split.image_ids), len(split.caption_ids)))
    np.save(tmp_path / "ours.npy", scores)
    root = ("--root", tmp_path)
    for libraries in imported(
        ("add", "ours", "--scores", "ours.npy", *root), ("evaluate", *root), ("tables", *root)
    ):
        assert not libraries & {
            "torch",
            "torchvision",
            "timm",
            "transformers",
            "dask",
            "distributed",
        }


def test_a_head_s_scores_are_traced_where_torch_is_not_installed(trained: Path) -> None:
    imported(
        (
            "trace",
            trained / "similarities" / "sample" / "vse2ad-region-bigru-s0.zarr",
            "--root",
            trained,
        ),
        lacking=("torch", "torchvision", "timm", "transformers"),
    )


@pytest.mark.slow
def test_tables_are_written_without_torch_and_pandas(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "metrics.json").write_text("{}", encoding="utf-8")
    (libraries,) = imported(("tables", "--root", tmp_path))
    assert libraries & HEAVY <= {"safetensors"}


def test_a_finished_store_and_a_finished_head_are_left_without_torch(trained: Path) -> None:
    tiny = ("dimension=16", "word_dimension=8", "batch_size=16", "epochs=1", "decay_epoch=1")
    changes = [word for change in tiny for word in ("-S", f"training.sample.{change}")]
    engine = (
        "{engine: grid, network: test_efficientnet, weights: untrained, image_size: 64, grid: 2}"
    )
    features = ("-S", f"features.light.grid={engine}")
    where = ("--root", trained, "--params", ROOT / "params.yaml")
    # The first runs keep the digest of the manifest, whose file has settled meanwhile.
    for first in (
        ("extract", "--feature", "grid", *where, *features),
        ("train", "--feature", "region", *where, *changes),
    ):
        cli.main([str(each) for each in first], standalone_mode=False)
    for libraries in imported(
        ("extract", "--feature", "grid", *where, *features),
        ("train", "--feature", "region", *where, *changes),
        ("score", "--feature", "region", *where, *changes),
    ):
        assert libraries & HEAVY <= {"safetensors"}

"""What a command imports: torch alone takes two seconds, and most commands do without it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stages.cli import COMMANDS, cli

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "torchvision", "timm", "transformers", "safetensors", "zarr", "dask", "distributed", "pandas",
         "pyarrow", "scipy", "matplotlib", "faiss", "PIL"}
RUN = """
import json, sys
from stages import cli
sys.argv = ["pipeline", *json.loads(sys.argv[1])]
try:
    cli.main()
except SystemExit as ended:
    print(file=sys.stderr)
    print(json.dumps([ended.code, sorted({name.partition(".")[0] for name in sys.modules})]), file=sys.stderr)
"""


def imported(*arguments: str | Path) -> set[str]:
    """The libraries that a command has imported when it ends, and it must end well."""
    ran = subprocess.run([sys.executable, "-c", RUN, json.dumps([str(each) for each in arguments])], cwd=ROOT,
                         capture_output=True, text=True, check=True)
    code, libraries = json.loads(ran.stderr.strip().splitlines()[-1])
    assert code == 0, ran.stderr
    return set(libraries)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_imports_no_library(command: str) -> None:
    assert not imported(command, "--help") & (HEAVY | {"pydantic"})


def test_a_small_matrix_is_measured_without_torch(tmp_path: Path) -> None:
    np.save(tmp_path / "sims.npy", np.random.default_rng(0).normal(size=(4, 20)))
    assert imported("evaluate", "--similarity", tmp_path / "sims.npy") & HEAVY <= {"scipy", "safetensors"}


def test_a_store_is_measured_without_torch(trained: Path) -> None:
    store = trained / "similarities" / "sample" / "vse2ad-region-bigru-s0.zarr"
    assert imported("evaluate", "--similarity", store) & HEAVY <= {"zarr", "scipy", "safetensors"}


def test_tables_are_written_without_torch_and_pandas(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "metrics.json").write_text("{}", encoding="utf-8")
    assert imported("tables", "--root", tmp_path) & HEAVY <= {"safetensors"}


def test_a_finished_store_and_a_finished_head_are_left_without_torch(trained: Path) -> None:
    tiny = ("dimension=16", "word_dimension=8", "batch_size=16", "epochs=1", "decay_epoch=1")
    changes = [word for change in tiny for word in ("-S", f"training.sample.{change}")]
    engine = "{engine: grid, network: test_efficientnet, weights: untrained, image_size: 64, grid: 2}"
    features = ("-S", f"features.light.grid={engine}")
    where = ("--root", trained, "--params", ROOT / "params.yaml")
    cli.main([str(each) for each in ("extract", "--feature", "grid", *where, *features)], standalone_mode=False)
    for command, more in ((("extract", "--feature", "grid"), features), (("train", "--feature", "region"), changes),
                          (("score", "--feature", "region"), changes)):
        assert imported(*command, *where, *more) & HEAVY <= {"safetensors"}

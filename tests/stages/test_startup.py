"""What a command imports: torch alone takes two seconds, and most commands do without it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pipeline.foundation.files.remembered import has_settled, state_of
from pipeline.foundation.manifest import Manifest
from stages.cli import COMMANDS, cli

pytestmark = pytest.mark.slow

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


def test_help_imports_no_library() -> None:
    commands = [("--help",), *((*command.split(), "--help") for command in COMMANDS)]
    for command, libraries in zip(commands, imported(*commands), strict=True):
        assert not libraries & (HEAVY | {"pydantic", "yaml"}), command


NETWORKS = {"torch", "torchvision", "timm", "transformers", "dask", "distributed"}
TINY = ("dimension=16", "word_dimension=8", "batch_size=16", "epochs=1", "decay_epoch=1")
GRID = "{engine: grid, network: test_efficientnet, weights: untrained, image_size: 64, grid: 2}"


def test_commands_import_no_more_than_they_need(
    scenes: Manifest, trained: Path, tmp_path: Path
) -> None:
    """In one process: those first that need least, as each shows what those before did not
    import.
    """
    changes = [word for change in TINY for word in ("-S", f"training.sample.{change}")]
    where = ("--root", trained, "--params", ROOT / "params.yaml")
    extract = ("extract", "--feature", "grid", *where, "-S", f"features.light.grid={GRID}")
    train = ("train", "--feature", "region", *where, *changes)
    # The first runs keep the digest of the manifest, but of no file that was written just now.
    manifest = trained / "data" / "sample.parquet"
    while not has_settled(manifest, state_of(manifest)):
        time.sleep(0.1)
    for first in (extract, train):
        cli.main([str(each) for each in first], standalone_mode=False)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "metrics.json").write_text("{}", encoding="utf-8")
    generator = np.random.default_rng(0)
    np.save(tmp_path / "sims.npy", generator.normal(size=(4, 20)))
    given = tmp_path / "given"
    scenes.save(given / "data" / "sample.parquet")
    split = scenes.split("test")
    np.save(
        given / "ours.npy", generator.normal(size=(len(split.image_ids), len(split.caption_ids)))
    )
    of_given = ("--root", given)
    store = trained / "similarities" / "sample" / "vse2ad-region-bigru-s0.zarr"
    cases: list[tuple[tuple[str | Path, ...], set[str]]] = [
        (("tables", "--root", tmp_path), HEAVY - {"safetensors"}),
        (extract, HEAVY - {"safetensors"}),
        (train, HEAVY - {"safetensors"}),
        (("score", "--feature", "region", *where, *changes), HEAVY - {"safetensors"}),
        (("evaluate", "--system", tmp_path / "sims.npy"), HEAVY - {"safetensors"}),
        (("evaluate", "--system", store), HEAVY - {"safetensors", "zarr"}),
        (("add", "ours", "--scores", "ours.npy", *of_given), NETWORKS),
        (("evaluate", *of_given), NETWORKS),
        (("tables", *of_given), NETWORKS),
    ]
    libraries = imported(*(command for command, _ in cases))
    for (command, unwanted), imports in zip(cases, libraries, strict=True):
        assert not imports & unwanted, (*command[:3], imports & unwanted)


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

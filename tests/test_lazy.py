"""Packages that import on demand: what they offer is what their `__init__` says, whatever was
imported before.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from pipeline.foundation.parts import lazy
from pipeline.foundation.parts.errors import InputError
from pipeline.make.heads.objectives import OBJECTIVES
from pipeline.make.heads.pooling import POOLINGS

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(
    ".".join(file.relative_to(ROOT).parent.parts)
    for file in ROOT.glob("pipeline/**/__init__.py")
    if "lazy.imports(__name__)" in file.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", PACKAGES)
def test_all_that_is_offered_is_there(name: str) -> None:
    package = import_module(name)
    for offered in package._offered:
        assert getattr(package, offered) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing


def test_a_module_of_an_offered_name_does_not_hide_it() -> None:
    import_module("pipeline.foundation.manifest.build")
    from pipeline.foundation import manifest

    assert not isinstance(manifest.build, ModuleType)
    assert callable(manifest.build)
    assert isinstance(manifest.split_names, ModuleType)


@pytest.mark.parametrize("table", [POOLINGS, OBJECTIVES])
def test_tables_look_their_objects_up(table: lazy.LookupTable[type]) -> None:
    for name in table:
        assert table[name].__module__ == table.module(name)
    assert "nothing" not in table
    with pytest.raises(KeyError):
        _ = table["nothing"]
    with pytest.raises(InputError, match=r"unknown .* 'nothing'"):
        table.module("nothing")


OURS = """
import sys
from stages import cli
sys.argv = ["pipeline", "evaluate", sys.argv[1]]
try:
    cli.main()
except SystemExit as ended:
    assert not ended.code
for module in list(sys.modules.values()):
    print(getattr(module, "__file__", None))
"""


@pytest.mark.slow
def test_a_matrix_is_measured_by_few_files(tmp_path: Path) -> None:
    captions = np.repeat(np.eye(20), 5, axis=1)
    np.save(tmp_path / "scores.npy", captions + np.linspace(0, 0.5, 100))
    ran = subprocess.run(
        [sys.executable, "-c", OURS, str(tmp_path / "scores.npy")],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = [Path(line) for line in ran.stdout.splitlines() if line.endswith(".py")]
    ours = {file.relative_to(ROOT) for file in files if file.is_relative_to(ROOT)}
    ours = {file for file in ours if file.parts[0] in ("pipeline", "stages")}
    assert Path("stages/evaluate.py") in ours
    assert len(ours) <= 97, sorted(map(str, ours))
    of_training = {file for file in ours if file.parts[1] in ("make", "run", "extensions")}
    assert not of_training

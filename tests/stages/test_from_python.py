"""What commands do, called from Python: ordinary functions, which need no command line and have its
defaults.
"""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from pipeline import settings
from pipeline.settings.paths import Paths
from pipeline.systems.scores.judged import Columns
from stages import cli
from stages.compare import compare
from stages.data import make_manifest
from stages.evaluate import evaluate
from stages.project import render_sample

ROOT = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", random.normal(size=(6, 30)))
    return tmp_path


def test_a_data_set_is_made_and_matrices_are_measured_and_compared(root: Path, capfd: Any) -> None:
    paths, chosen = (
        Paths(root),
        settings.load(ROOT / "params.yaml", ("sample.images=12", "evaluate.resamples=100")),
    )
    render_sample(paths, chosen)
    make_manifest(paths, chosen, "sample")
    assert "12 images" in capfd.readouterr().out
    evaluate(paths, chosen, ("a.npy",), columns=Columns(captions_per_image=5), output="json")
    assert json.loads(capfd.readouterr().out)[0]["protocol"] == "all"
    compare(paths, chosen, ("a.npy", "b.npy"))
    assert "a" in capfd.readouterr().out


def test_they_need_no_click_context(root: Path) -> None:
    script = (
        "import click; from pathlib import Path; from pipeline import settings; "
        "from pipeline.settings.paths import Paths; "
        "from stages.evaluate import evaluate; click.get_current_context = None; "
        f"evaluate(Paths(Path('.')), settings.load(Path({str(ROOT / 'params.yaml')!r})), ('a.npy',))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    assert "R@1" in ran.stdout


def called(command: str) -> tuple[click.Command, Any]:
    """A command, and the function that it calls: the last statement of its own."""
    name, file = command.split()[-1].replace("-", "_"), cli.file_of(command)
    tree = ast.parse((ROOT / "stages" / "commands" / f"{file}.py").read_text(encoding="utf-8"))
    body = next(
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == f"{name}_command"
    ).body
    assert isinstance(body[-1], ast.Expr)
    assert isinstance(body[-1].value, ast.Call)
    return cli.command(command), getattr(
        import_module(f"stages.{file}"), ast.unparse(body[-1].value.func)
    )


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_a_function_has_the_defaults_of_its_command(command: str) -> None:
    found, function = called(command)
    parameters = inspect.signature(function).parameters
    given = found.make_context(command, [], resilient_parsing=True).params
    for option in found.params:
        if option.name in parameters and not option.required:
            default = parameters[option.name].default
            is_needed = default is inspect.Parameter.empty
            assert is_needed or default == given[option.name], option.name

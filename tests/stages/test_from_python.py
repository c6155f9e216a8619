"""What commands do, called from Python: ordinary functions of their options, which need no command
line and have its defaults.
"""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.foundation import settings
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores.judged import Columns
from stages import cli
from stages.commands.add import AddOptions
from stages.commands.compare import CompareOptions
from stages.commands.evaluate import EvaluateOptions
from stages.commands.manifest import ManifestOptions
from stages.commands.project import SampleOptions
from stages.compare import compare
from stages.declared import Group, Options, stage
from stages.evaluate import evaluate
from stages.manifest import make_manifest
from stages.project import render_sample

pytestmark = pytest.mark.slow

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
    render_sample(paths, chosen, SampleOptions())
    make_manifest(paths, chosen, ManifestOptions(name="sample"))
    assert "12 images" in capfd.readouterr().out
    options = EvaluateOptions(
        systems=("a.npy",), columns=Columns(captions_per_image=5), output="json"
    )
    evaluate(paths, chosen, options)
    assert json.loads(capfd.readouterr().out)[0]["protocol"] == "all"
    compare(paths, chosen, CompareOptions(systems=("a.npy", "b.npy")))
    assert "a" in capfd.readouterr().out


def test_they_need_no_click_context(root: Path) -> None:
    script = (
        "import click; from pathlib import Path; from pipeline.foundation import settings; "
        "from pipeline.foundation.settings.paths import Paths; "
        "from stages.commands.evaluate import EvaluateOptions; "
        "from stages.evaluate import evaluate; click.get_current_context = None; "
        f"evaluate(Paths(Path('.')), settings.load(Path({str(ROOT / 'params.yaml')!r})), "
        "EvaluateOptions(systems=('a.npy',)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    assert "R@1" in ran.stdout


def test_arguments_of_several_options_have_the_default_of_these() -> None:
    compared = []
    for module in sorted({cli.place_of(name).partition(":")[0] for name in cli.commands()}):
        for taken in vars(import_module(module)).values():
            if not (isinstance(taken, type) and issubclass(taken, Options)):
                continue
            for field in dataclasses.fields(taken):
                option = field.type.__metadata__[0]
                if isinstance(option, Group) and option.options:
                    default = field.default
                    if default is dataclasses.MISSING:
                        default = field.default_factory()
                    assert default == option.default(), f"{taken.__name__}.{field.name}"
                    compared.append(field.name)
    assert {"columns", "workers", "usage", "rules", "output", "variation"} <= {*compared}


def test_functions_that_commands_name_as_text_are_there() -> None:
    files = [
        *(ROOT / "stages" / "commands").glob("*.py"),
        *(ROOT / "pipeline" / "extensions").glob("*/command.py"),
    ]
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    named = re.findall(r'\b(?:command\(\s*\w+,|stage\()\s*"([\w.:]+)"', text)
    assert len(named) > 20
    assert all(callable(stage(name)) for name in named)


def test_options_without_effect_are_refused_on_the_command_line_alone(pipeline: Any) -> None:
    code, _, err = pipeline("add", "ours", "--scores", "a.npy", "--normalise")
    assert (code, err.strip()) == (
        2,
        "error: --normalise is for --embeddings; a matrix holds similarities already",
    )
    assert AddOptions(name="ours", scores="a.npy", normalise=True).normalise

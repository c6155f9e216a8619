"""The example of docs/extending.md: built, installed, and used by the commands like what is built
in.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from installing import ROOT, install
from preloaded import Commands

pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "docs" / "examples" / "vse-median-pooling"
TINY = ("dimension=16", "word_dimension=8", "batch_size=16", "epochs=1", "decay_epoch=1")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("example") / "site"
    install(EXAMPLE, target)
    return target


@pytest.fixture
def pipeline(site: Path, commands: Commands) -> Callable[..., str]:
    """Run a command with the example installed; what it printed."""

    def run(*arguments: str | Path, code: int = 0) -> str:
        ran = commands("pipeline", *arguments, code=code, PYTHONPATH=f"{ROOT}{os.pathsep}{site}")
        return ran.stdout + ran.stderr

    return run


def test_a_head_with_the_examples_pooling(
    site: Path, project: Path, pipeline: Callable[..., str]
) -> None:
    changes = [word for change in TINY for word in ("-S", f"training.sample.{change}")]
    arguments = (
        "train",
        "--feature",
        "region",
        "--pooling",
        "median",
        "--root",
        project,
        "--params",
        ROOT / "params.yaml",
        *changes,
    )
    assert "RSUM" in pipeline(*arguments)
    head = project / "heads" / "sample" / "vse2ad-median-region-bigru-s0"
    assert {"vse_median_pooling.median", "texts/bigru"} <= json.loads(
        (head / "record.json").read_text(encoding="utf-8")
    )["versions"].keys()
    module = site / "vse_median_pooling" / "median.py"
    module.write_text(
        module.read_text(encoding="utf-8").replace(".mean(dim=0)", ".amax(dim=0)"), encoding="utf-8"
    )
    assert "other code (vse_median_pooling.median)" in pipeline(*arguments)


def test_the_examples_reader(pipeline: Callable[..., str], corpus: Path, tmp_path: Path) -> None:
    files = sorted(path.name for path in (corpus / "images").iterdir())
    lines = [f"{file} test\n  A scene of number {number}." for number, file in enumerate(files)]
    (tmp_path / "captions.blocks").write_text("\n".join(lines), encoding="utf-8")
    printed = pipeline(
        "manifest",
        "mine",
        "--images",
        corpus / "images",
        "--annotations",
        tmp_path / "captions.blocks",
        "--root",
        tmp_path,
    )
    assert f"{len(files)} images (test {len(files)})" in printed


def test_the_example_pools_medians(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLE)
    from vse_median_pooling.median import MedianPool
    from vse_median_pooling.options import MedianPoolOptions

    items = torch.tensor([[[1.0], [9.0], [2.0], [5.0]], [[1.0], [7.0], [3.0], [99.0]]])
    pooled = {
        even: MedianPool(1, MedianPoolOptions(even=even))(items, torch.tensor([4, 3]))
        .flatten()
        .tolist()
        for even in ("mean", "lower")
    }
    assert pooled == {"mean": [3.5, 3.0], "lower": [2.0, 3.0]}


def test_an_option_of_the_examples_pooling_is_checked_with_the_settings(
    pipeline: Callable[..., str],
) -> None:
    def settings(option: str, code: int) -> str:
        return pipeline(
            "settings",
            "recipes.vse2ad.image_pooling",
            "--params",
            ROOT / "params.yaml",
            "-S",
            f"recipes.vse2ad.image_pooling={{name: median, {option}}}",
            code=code,
        )

    assert "even: lower" in settings("even: lower", 0)
    assert "unknown option of the pooling median, 'odd'; its options: even" in settings(
        "odd: lower", 2
    )
    assert "pooling median: even: Input should be 'mean' or 'lower', got 'upper'" in settings(
        "even: upper", 2
    )


def test_the_page_shows_what_the_example_holds() -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert shown.strip() in (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")


def test_the_page_names_every_group() -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    tables = "\n".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "pipeline").rglob("*.py")
    )
    kinds = set(
        re.findall(
            r'(?:^    \},\n    |LookupTable\(\s*\{\},\s*)"(\w+)"(?:,\n    "[a-z ]+")?(?:,\n    base=".+")?(?:,\n)?\)',
            tables,
            re.MULTILINE,
        )
    )
    assert len(kinds) >= 8
    assert kinds == set(re.findall(r"^\| `vse_pipeline\.(\w+)` \|", page, re.MULTILINE))

"""`pipeline figures`: what is there is drawn, what lacks is said, the floats compile."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import invented_run
import pandas as pd
import pytest
from pylatexenc.latexwalker import LatexWalker

from pipeline.run.report.tables import TABLES
from stages import cli

pytestmark = pytest.mark.slow

PARAMS = str(Path(__file__).parents[2] / "params.yaml")
NEEDED = {
    "training_curve": "vse2ad-noadopt",
    "pooling_coefficients": "vse_infty",
    "retrieval_time": "pipeline lab throughput",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, evaluated: Path) -> Path:
    """The invented run, evaluated."""
    root = tmp_path_factory.mktemp("run")
    shutil.copytree(evaluated, root, dirs_exist_ok=True)
    return root


def command(name: str, root: Path, *changes: str) -> None:
    """A command below a root, with the project's settings."""
    options = [part for change in changes for part in ("-S", change)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sys,
            "argv",
            ["pipeline", *name.split(), "--root", str(root), "--params", PARAMS, *options],
        )
        with pytest.raises(SystemExit) as ended:
            cli.main()
    assert not ended.value.code


@pytest.fixture(scope="module")
def drawn(run: Path) -> Path:
    """The figures of the invented run."""
    command("figures", run)
    return run / "results" / "figures"


@pytest.mark.specification
def test_figures_whose_inputs_are_there_are_drawn_and_the_others_named(drawn: Path) -> None:
    names = ("negatives", "retrieved_images", "retrieved_captions")
    files = {
        f"{name}.{kind}" for name in names for kind in ("pdf", "svg", "png", "csv", "tex", "md")
    }
    assert {file.name for file in drawn.iterdir()} == files | {"index.md", "preview.tex"}
    index = (drawn / "index.md").read_text(encoding="utf-8").replace("\\", "")
    assert all(f"![{name}]({name}.png)" in index for name in names)
    left_out = {
        line.split(": needs ")[0][2:]: line for line in index.splitlines() if ": needs " in line
    }
    assert left_out.keys() == NEEDED.keys()
    assert all(NEEDED[name] in line for name, line in left_out.items())


def test_retrievals_are_of_the_widest_ensemble_with_its_stand_ins_named(drawn: Path) -> None:
    source = (drawn / "retrieved_images.tex").read_text(encoding="utf-8")
    assert "VSE+2AD, Region+Grid+Patch, BiGRU, seed 0" in source
    assert r"$\dagger$ Not the papers' networks" in source
    assert set(pd.read_csv(drawn / "retrieved_images.csv")["file"]) <= set(invented_run.FILES)


def test_figures_of_measured_systems_say_which_they_lack(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command("figures", run, "figures=[training_images, half_size]")
    said = capsys.readouterr().out
    assert (
        "training_images: left out, it needs a system that was trained on several numbers of images"
        in said
    )
    assert "half_size: left out, it needs a cross-encoder" in said


def test_floats_parse_and_where_there_is_latex_compile(drawn: Path) -> None:
    """Compiled where there is a pdflatex (Debian: texlive-latex-recommended)."""
    source = (drawn / "preview.tex").read_text(encoding="utf-8")
    LatexWalker(source, tolerant_parsing=False).get_latex_nodes()
    assert source.count(r"\includegraphics") == 3
    if pdflatex := shutil.which("pdflatex"):
        done = subprocess.run(
            [
                pdflatex,
                "-interaction=nonstopmode",
                "-halt-on-error",
                "-no-shell-escape",
                "preview.tex",
            ],
            cwd=drawn,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:]
        assert "Overfull" not in done.stdout


def test_figures_that_are_not_asked_for_stay(drawn: Path) -> None:
    before = {file.name: file.read_bytes() for file in drawn.iterdir()}
    command("figures", drawn.parents[1], "figures=[negatives, kmax_grid]")
    after = {file.name: file.read_bytes() for file in drawn.iterdir()}
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == {
        "index.md"
    }  # others are not said to be left out
    command("figures", drawn.parents[1], "figures=[kmax_grid]")
    assert {file.name: file.read_bytes() for file in drawn.iterdir()} == after


def test_tables_that_are_not_asked_for_stay(run: Path) -> None:
    folder = run / "results" / "tables"
    command("tables", run, "tables=[vse2ad_table2, vse2ad_table1]")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert len(before) == 5
    command("tables", run, "tables=[vse2ad_table1]")
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_what_was_timed_is_drawn_and_stands_in_the_tables(run: Path, drawn: Path) -> None:
    sizes = ("training.sample.dimension=8", "training.sample.word_dimension=8")
    command(
        "lab throughput",
        run,
        "throughput.batch_size=2",
        "throughput.pools=[5, 50]",
        "throughput.pairs=1",
        "throughput.repeats=1",
        "throughput.seconds=0.0",
        *sizes,
    )
    timed = json.loads((run / "results" / "throughput.json").read_text())
    command("figures", run, "figures=[retrieval_time]")
    assert pd.read_csv(drawn / "retrieval_time.csv").to_dict("records") == timed["pools"]
    command("tables --all", run)
    text = (run / "results" / "tables" / "vse2ad_table4.md").read_text(encoding="utf-8")
    assert "#OIPs: multiples of vse2ad-gcn." in text
    assert {file.stem for file in (run / "results" / "tables").glob("*.tex")} == {
        *TABLES,
        "preview",
    }


def test_a_broken_throughput_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "throughput.json").write_text("[")
    assert "pipeline lab throughput" in refused("figures")

"""Installed from a wheel, outside a clone: commands that need no settings, and a project of one's
own.
"""

from __future__ import annotations

import email
import json
import re
import sys
from pathlib import Path

import light
import numpy as np
import pytest
from installing import ROOT, Run
from preloaded import Commands

from pipeline.foundation.settings.written import TEMPLATES, template
from pipeline.make.features.project import new

pytestmark = pytest.mark.slow


def test_the_wheel_holds_what_a_project_starts_with(installed: Path) -> None:
    for name, inside in TEMPLATES.items():
        copy = installed / "pipeline" / "foundation" / "settings" / "templates" / inside
        assert copy.read_bytes() == (ROOT / name).read_bytes() == template(name).read_bytes()
    assert (installed / "manifests" / "published" / "vse2ad_table1.csv").is_file()
    assert (installed / "pipeline" / "run" / "report" / "page" / "page.css").is_file()
    for data in ("manifests/recipes", "pipeline/foundation/settings"):
        assert (
            {file.name for file in (installed / data).glob("*.yaml")}
            == {file.name for file in (ROOT / data).glob("*.yaml")}
            != set()
        )


def test_the_source_distribution_holds_the_tests_and_what_they_read(source: Path) -> None:
    folders = ("benchmarks", "docs", "manifests", "pipeline", "stages", "tests")
    written = {
        file.relative_to(ROOT)
        for folder in folders
        for file in ROOT.joinpath(folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert {file for file in written if not (source / file).is_file()} == set()
    assert {file.name for file in source.iterdir()} >= {
        *(Path(name).parts[0] for name in TEMPLATES),
        "Makefile",
        "LICENSE",
        "CITATION.cff",
        "constraints.txt",
    }


def test_a_registry_gets_the_readme_without_files_of_the_clone(installed: Path) -> None:
    (file,) = installed.glob("vse_pipeline-*.dist-info/METADATA")
    described = email.message_from_string(file.read_text(encoding="utf-8"))
    text = str(described.get_payload())
    assert described["Description-Content-Type"] == "text/markdown"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    headings = re.compile(r"^#.*", re.MULTILINE)
    assert headings.findall(text) == headings.findall(readme)
    assert re.findall(r"\]\((?!https?:|#)[^)]*\)", text) == []
    assert [line for line in text.splitlines() if line.startswith("|")]  # tables of text are left


def test_the_installed_code_runs(outside: Run, installed: Path, tmp_path: Path) -> None:
    ran = outside(
        sys.executable, "-c", "import pipeline, stages; print(pipeline.__file__, stages.__file__)"
    )
    assert ran.stdout.split() == [
        str(installed / name / "__init__.py") for name in ("pipeline", "stages")
    ]


def test_commands_without_settings_run_in_any_folder(outside: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "sims.npy", np.repeat(np.eye(6, dtype=np.float32), 5, axis=1))
    lines = (
        "evaluate --system sims.npy",
        "lab sample -S sample.images=12 -S sample.size=32",
        "manifest sample",
        "train --feature grid",
    )
    asked = json.dumps([line.split() for line in lines])
    ran = outside(sys.executable, "-c", light.RUN, asked)
    answers = json.loads(ran.stdout.splitlines()[-1])
    assert [code for code, _ in answers] == [0, 0, 0, 2]
    assert "RSUM 600.0" in answers[0][1]
    assert len(list((tmp_path / "data" / "sample" / "images").iterdir())) == 12
    assert (
        answers[3][1]
        == "error: there is no params.yaml here; `pipeline init` writes one, --params names one elsewhere\n"
    )


def test_init_writes_a_project_and_overwrites_nothing(outside: Run, tmp_path: Path) -> None:
    printed = outside("pipeline", "init", "mine").stdout
    mine = tmp_path / "mine"
    written = {file.relative_to(mine).as_posix() for file in mine.rglob("*") if file.is_file()}
    assert written == {*TEMPLATES, ".dvc/config", ".dvc/.gitignore"}
    assert all(file in printed for file in written)
    assert "cd mine && dvc repro" in printed
    (mine / "params.yaml").write_text("mine", encoding="utf-8")
    assert (
        "has params.yaml and dvc.yaml already" in outside("pipeline", "init", "mine", code=2).stderr
    )
    assert (mine / "params.yaml").read_text(encoding="utf-8") == "mine"


def test_init_leaves_ignore_files_that_are_there(outside: Run, tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("own\n", encoding="utf-8")
    (tmp_path / ".git").mkdir()
    outside("pipeline", "init")
    assert (tmp_path / ".gitignore").read_text(encoding="utf-8") == "own\n"
    assert "no_scm" not in (tmp_path / ".dvc" / "config").read_text(
        encoding="utf-8"
    )  # DVC and git go together


def test_a_project_beside_a_clone_is_not_of_its_git(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "clone" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "clone")
    for folder, alone in ((Path("../mine"), True), (Path("inside"), False)):
        new.write(folder)
        assert ("no_scm" in (folder / ".dvc" / "config").read_text(encoding="utf-8")) is alone


def test_dvc_takes_the_project_for_its_own(commands: Commands, tmp_path: Path) -> None:
    mine, inner = tmp_path / "mine", tmp_path / "mine" / "inner"
    new.write(mine)
    assert "extract@region" in commands("dvc", "stage", "list", cwd=mine).stdout
    new.write(inner)
    assert commands("dvc", "root", cwd=inner).stdout.strip() == "."
    assert "extract@region" in commands("dvc", "stage", "list", cwd=inner).stdout

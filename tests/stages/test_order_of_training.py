"""Heads that rest on other heads are trained after them, though a stage of `dvc repro` asks for one
head alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from preloaded import Commands
from tiny_bert import tiny_bert
from tiny_project import ROOT

from pipeline.make.training import HeadArtefact

pytestmark = pytest.mark.slow

EMB, CE = (Path(f"heads/sample/{recipe}-region-bert-s0") for recipe in ("emb", "ce-listwise"))


def started_from() -> Any:
    return json.loads((CE / "record.json").read_text())["made_from"]["start"]["identity"]


def test_heads_are_trained_after_those_that_they_rest_on(
    project: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    settings["run"].update(
        features=["region"],
        ensembles=[],
        ablations=[],
        texts=["bert"],
        recipes=["ce-listwise", "emb"],
    )
    settings["recipes"] = {
        "ce-listwise": {
            "pairs": {"objective": "listwise", "negatives": 5, "hard": 1.0, "val_images": 2}
        }
    }
    settings["training"]["sample"].update(
        dimension=16, batch_size=16, epochs=1, bert=str(tiny_bert(project / "bert", layers=1))
    )
    Path("params.yaml").write_text(yaml.safe_dump(settings))
    train = (
        "pipeline",
        "train",
        "--feature",
        "region",
        "--text",
        "bert",
        "--if-changed",
        "redo",
        "--recipe",
    )
    commands(*train, "ce-listwise")
    first = HeadArtefact.open(EMB).record.identity
    assert started_from() == first
    assert "nothing to do" in commands(*train, "emb").stdout
    settings["recipes"]["emb"] = {"learning_rate": 0.001}
    settings["recipes"]["ce"] = {"learning_rate": 0.00002}  # ce-listwise changes by its start alone
    Path("params.yaml").write_text(yaml.safe_dump(settings))
    commands(*train, "ce-listwise")
    assert HeadArtefact.open(EMB).record.identity != first
    assert started_from() == HeadArtefact.open(EMB).record.identity

"""Heads that rest on other heads: trained after them, by hand and by `dvc repro`, whatever the order of recipes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from dulwich import porcelain
from tiny_bert import tiny_bert
from tiny_project import ROOT, TINY, dvc

from pipeline.files.digest import sha256
from pipeline.project import new

EMB, CE = (Path(f"heads/sample/{recipe}-region-bert-s0") for recipe in ("emb", "ce-listwise"))


def write(copy: Path) -> None:
    """A run whose recipes are listed in the wrong order."""
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    settings["sample"] = {"images": 24, "size": 64, "seed": 0}
    settings["features"]["light"]["region"] = {"engine": "pyramid", **TINY, "image_size": 128}
    settings["run"].update(features=["region"], ensembles=[], ablations=[], texts=["bert"],
                           recipes=["ce-listwise", "emb"])
    settings["recipes"]["ce-listwise"]["pairs"]["val_images"] = 2
    settings["training"]["sample"].update(dimension=16, batch_size=16, epochs=1,
                                          bert=str(tiny_bert(copy / "bert", layers=1)))
    porcelain.init(copy)
    new.write(copy, {"params.yaml": yaml.safe_dump(settings)})


def started_from() -> Any:
    return json.loads((CE / "head.json").read_text())["start"]


def test_heads_are_trained_after_those_that_they_rest_on(tmp_path: Path, commands: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    dvc(tmp_path, "repro", "train", commands=commands)
    first = sha256(EMB / "best.safetensors")
    assert started_from() == first
    params = yaml.safe_load(Path("params.yaml").read_text())
    params["recipes"]["emb"]["learning_rate"] = 0.001
    params["recipes"]["ce"]["learning_rate"] = 0.00002  # ce-listwise changes by its start alone
    Path("params.yaml").write_text(yaml.safe_dump(params))
    dvc(tmp_path, "repro", "train", commands=commands)
    assert sha256(EMB / "best.safetensors") != first
    assert started_from() == sha256(EMB / "best.safetensors")

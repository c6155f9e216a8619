"""The command that `evaluate` names for an outdated reranked system makes the same system."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scored import score

from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems import reranking
from pipeline.judge.systems.reranking.base import PairSource
from pipeline.judge.systems.scores.made import Reranked
from pipeline.judge.systems.scores.system import System

pytestmark = pytest.mark.slow

R, G = "vse2ad-region-bigru-s0", "vse2ad-grid-bigru-s0"
ADD = ("--k", "7", "--combine", "add")
VAL = ("-S", "score.split=val")
CASES = {
    "k": ("--k", "5"),
    "all": ("--k", "all"),
    "weight": ("--k", "5", "--combine", "norm_add", "--weight", "0.123456789"),
    "folds": ("--k", "3", "--folds", "3"),
    "one fold": ("--k", "3", "--folds", "1"),
    "protocol": ("--k", "3", "--protocol", "all"),
    "index": ("--k", "5", "--index", "exact"),
    "name": ("--k", "5", "--name", "mine"),
    "split": ("--k", "5", *VAL),
    "tune": (*ADD, "--tune", "--name", "choice"),
    "tuned on": ("--tuned-on", "similarities/sample/val/choice.zarr"),
    "pool": ("--k", "5", "--distractors", f"similarities/other/{R}.zarr"),
    "zero-shot": ("--k", "5", "--dataset", "other", "--trained-on", "sample"),
}


def made(name: str, dataset: str = "sample", split: str = "test") -> System:
    return System.open(Paths(Path()).similarity(dataset, name, split))


class Double:
    """A scorer of pairs of any two data sets: numbers that look drawn, by ids."""

    gives_logits = True

    def __init__(self, name: str, source: PairSource) -> None:
        self.made_from = {"seen": [source.images, source.captions]}

    def score(self, image_ids: Any, caption_ids: Any, progress: Any = None) -> Any:
        return np.sin(image_ids * 12.9898 + caption_ids * 78.233).astype(np.float32)


def test_the_command_that_makes_a_system_again_makes_the_same_one(
    pipeline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(reranking.SCORERS._places, "double", f"{__name__}:Double")  # type: ignore[attr-defined]
    for feature, noise in (("region", 2.0), ("grid", 1.5)):
        score(feature, noise=noise)
        score(feature, noise=noise, split="val")
        score(feature, noise=noise, dataset="other", trained_on="sample")
    of_entry = "[{name: rr, retriever: region, with: grid, k: 4, protocol: all}]"
    run = (
        "-S",
        "run.features=[region, grid]",
        "-S",
        "run.ensembles=[]",
        "-S",
        f"run.rerank={of_entry}",
    )
    for case, options in CASES.items():
        scorer = "double:any" if case in ("pool", "zero-shot") else G
        code, _, err = pipeline("rerank", "--retriever", R, "--with", scorer, *options)
        assert code == 0, (case, err)
        split = "val" if case in ("split", "tune") else "test"
        dataset = "other" if case == "zero-shot" else "sample"
        name = {"name": "mine", "tune": "choice"}.get(case, f"{R}+rerank")
        check(pipeline, case, made(name, dataset, split))
    assert pipeline("rerank", *run)[0] == 0
    check(pipeline, "run", made(f"{R}+rr"), run)


def check(pipeline: Any, case: str, store: System, run: tuple[str, ...] = ()) -> None:
    facts = store.made_from
    assert isinstance(facts, Reranked)
    before = store.store.record.identity
    shutil.move(store.path, "earlier")
    command = facts.made_again(store.name)[1] + facts.where
    code, _, err = pipeline(*shlex.split(command), *run)
    assert code == 0, (case, command, err)
    assert System.open(store.path).store.record.identity == before, (case, command)
    shutil.rmtree("earlier")
    if case != "tune":
        shutil.rmtree(store.path)  # what holds more candidates is another store

"""`evaluate --as TOOL`: the numbers are those of the tool, ties included."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval

from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.conventions import Numbers, OfLists, of_tool

Run = dict[str, dict[str, float]]
Grades = dict[str, dict[str, int]]


def run_with_ties(seed: int = 0) -> tuple[Run, Grades]:
    """Queries with many exact ties, doubles that differ by less than floats do, scores below zero,
    ids of one and two digits, ids that queries have too, right answers that are not listed, and
    queries without a right one or without judgements.
    """
    rng = np.random.default_rng(seed)
    run: Run = {}
    grades: Grades = {}
    for query in range(40):
        names = [str(each) for each in rng.permutation(60)[: rng.integers(1, 50)]]
        scores = rng.integers(-3, 4, len(names)) / 4 + rng.integers(0, 3, len(names)) * 1e-9
        run[str(query)] = dict(zip(names, scores.tolist(), strict=True))
        judged = rng.permutation(names)[:6].tolist() + ["not listed"]
        grades[str(query)] = {name: int(rng.integers(0, 4)) for name in judged}
    grades["7"] = dict.fromkeys(grades["7"], 0)
    del grades["8"]
    return run, grades | {"of another language": {"3": 1}}


def measured(tool: str, run: Any, grades: Any, folder: Path, names: Any = ()) -> Numbers:
    """What a run measures as a tool."""
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "qrels.json").write_text(json.dumps(grades))
    conventions = of_tool(tool)
    assert isinstance(conventions, OfLists)
    return conventions.measure(folder / "run.json", [], folder / "qrels.json", names)


def test_as_trec_eval(tmp_path: Path) -> None:
    run, grades = run_with_ties()
    kinds = {"map", "Rprec", "recip_rank", "ndcg"}
    kinds |= {f"{kind}.1,5,10,100" for kind in ("P", "recall", "ndcg_cut", "map_cut", "success")}
    of_queries = pytrec_eval.RelevanceEvaluator(grades, kinds).evaluate(run)
    names = [*next(iter(of_queries.values()))]
    ours = measured("trec_eval", run, grades, tmp_path, names)
    assert ours.queries == {"query": len(of_queries)} == {"query": 39}
    for name in names:
        theirs = np.mean([numbers[name] for numbers in of_queries.values()])
        assert ours.values[name] == pytest.approx(theirs, abs=1e-9), name

"""Runs as TREC's tools and ranx read them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from pipeline.judge.systems.scores import runs
from pipeline.judge.systems.scores.system import System


def test_a_run_lists_the_best_of_each_query_with_ranks_from_1(tmp_path: Path) -> None:
    scores = np.array([[0.1, 0.9, 0.5], [0.2, 0.3, 0.8]])
    system = System.of("my own", scores, np.array([0, 0, 1]), np.array([7, 8]), np.array([1, 2, 3]))
    best = {
        "image:7": {"caption:2": 0.9, "caption:3": 0.5},
        "image:8": {"caption:3": 0.8, "caption:2": 0.3},
        "caption:1": {"image:8": 0.2, "image:7": 0.1},
        "caption:2": {"image:7": 0.9, "image:8": 0.3},
        "caption:3": {"image:8": 0.8, "image:7": 0.5},
    }
    lines = []
    for query, listed in best.items():
        for rank, (document, score) in zip((1, 2), listed.items(), strict=True):
            lines.append(f"{query} Q0 {document} {rank} {score} myown")
    for name in ("run.txt", "run.json"):
        runs.write(tmp_path / name, system, 2, 0, 1)
    assert (tmp_path / "run.txt").read_text().splitlines() == lines
    assert json.loads((tmp_path / "run.json").read_text()) == best


def test_ranks_are_what_numbers_the_candidates_of_every_query_of_both_directions() -> None:
    """Scores of one direction that happen to look so do not turn those of the other."""

    def run(*scores: float) -> runs.Run:
        of_all = np.tile(scores, 20)  # fewer lists would say nothing
        query = np.arange(len(of_all)) // 3
        return runs.Run(query, np.arange(len(of_all)), of_all)

    numbered, scored = run(1, 2, 3, 1, 2, 3), run(0.9, 0.5, 0.2, 0.8, 0.7, 0.1)
    none = run()
    for parts, are_ranks in (
        ([numbered, numbered], True),
        ([numbered, none], True),
        ([none, numbered], True),
        ([scored, scored], False),
        ([numbered, scored], False),
        ([scored, numbered], False),
        ([run(1, 2, 3, 3, 2, 1), none], False),
        ([none, none], False),
    ):
        assert runs._are_ranks(parts) == are_ranks

"""The plan of a step follows what its numbers depend on, and only that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import plans
import pytest

RUN = ("-S", "run.features=[region]", "-S", "run.ensembles=[]", "-S", "run.ablations=[]")


@pytest.fixture
def planned(pipeline: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The parts of the plan with some settings changed."""
    monkeypatch.setattr("pipeline.features.extraction.needs.missing", lambda *_: [])

    def plan(*changes: str) -> dict[str, Any]:
        code, _, err = pipeline("plan", *RUN, *(word for change in changes for word in ("-S", change)))
        assert code == 0, err
        return plans.read()
    return plan


def test_the_plan_of_evaluate_follows_its_seed_its_judgements_and_nothing_else(planned: Any) -> None:
    Path("q.txt").write_text("image:1 0 caption:1 1\n")
    before = planned()
    assert before == planned("evaluate.block_megabytes=3.5", "extract.workers=2")
    for change in ("evaluate.seed=7", "evaluate.resamples=123", "evaluate.same_text=positive", "evaluate.qrels=q.txt",
                   "evaluate.metrics=[mR]"):
        after = planned(change)
        assert {step for step in before if before[step] != after[step]} == {"evaluate"}, change
    one = planned("evaluate.qrels=q.txt")
    Path("q.txt").write_text("image:1 0 caption:2 1\n")
    assert planned("evaluate.qrels=q.txt")["evaluate"]["judgements"] != one["evaluate"]["judgements"]
    assert before["evaluate"]["judgements"] is None

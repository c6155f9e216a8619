"""The states in which the benchmark of AdOpt times the released code: its most negatives, and its
fewest.
"""

from __future__ import annotations

import pytest

from benchmarks import objectives
from benchmarks.released import negatives_to_gather


@pytest.mark.parametrize(("state", "wanted"), [("early", range(64, 80)), ("late", range(1, 2))])
def test_both_ends_of_training_are_timed(state: str, wanted: range) -> None:
    images, captions = objectives.embeddings(state, 128)
    assert negatives_to_gather(captions @ images.T) in wanted
    assert negatives_to_gather(images @ captions.T) in wanted


@pytest.mark.parametrize("name", ["adopt", "adcto"])
def test_a_step_reaches_both_towers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = objectives.embeddings("late", 16)
    monkeypatch.setattr(objectives, "embeddings", lambda state, batch: pair)
    objectives.training_step(name, "late", 16)()
    assert all(each.grad is not None and each.grad.abs().sum() > 0 for each in pair)

"""Numbers as text and Markdown: every protocol, seeds together, nothing that a table would break on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline.evaluation.retrieval import Protocol, evaluate, summary
from pipeline.evaluation.statistics import interval


def measured(seed: int, folds: int = 1) -> dict[str, Any]:
    scores = np.eye(20) + np.random.default_rng(seed).random((20, 20))
    metrics = evaluate(scores, np.arange(20), Protocol(f"{folds}fold", folds=folds))
    return metrics.as_dict() | {"interval": interval(metrics)}


@pytest.mark.parametrize("write", [summary.to_text, summary.to_markdown])
def test_every_protocol_of_a_system_is_shown(write: Any) -> None:
    runs = [("net-s0", measured(0)), ("net-s0", measured(0, folds=2))]
    text = write(runs)
    for _, numbers in runs:
        assert f"net-s0, 20 images x 20 captions, protocol {numbers['protocol']}" in text
        assert "{:.1f} [{:.1f}, {:.1f}]".format(numbers["rsum"], *numbers["interval"]["rsum"]) in text
    assert "seeds" not in text


@pytest.mark.parametrize("write", [summary.to_text, summary.to_markdown])
def test_seeds_are_averaged_with_their_spread(write: Any) -> None:
    runs = [(f"net-s{seed}", measured(seed)) for seed in (0, 3, 10)] + [("other-s0", measured(1))]
    sums = [numbers["rsum"] for _, numbers in runs[:3]]
    text = write(runs)
    assert "net, protocol 1fold, mean ± standard deviation of 3 seeds: image → caption " in text
    assert f"RSUM {np.mean(sums):.1f} ± {np.std(sums, ddof=1):.1f}" in text
    assert "other, protocol" not in text


def test_names_do_not_break_the_table() -> None:
    table = summary.to_markdown([("a|b<script>", measured(0))]).splitlines()
    assert "a\\|b&lt;script>" in table[2]
    assert {line.replace("\\|", "").count("|") for line in table[:4]} == {10}

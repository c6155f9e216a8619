"""The benchmark of a training step: what it leaves out, what it times beside it, and how it
starts.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import measure, training_step
from pipeline.foundation.parts.errors import InputError

SIZE = (4, 6, 8)  # pairs, width, dim


@pytest.mark.slow
def test_products_alone_are_those_of_the_step() -> None:
    def flops(name: str) -> int:
        step = training_step.training_step(name, *SIZE)
        with FlopCounterMode(display=False) as counter:
            step()
        return int(counter.get_total_flops())

    assert flops("ours, products alone") == flops("ours") > 0


def test_what_this_cpu_is_slower_with_is_left_out_and_said(
    given_cpu: dict[str, float], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[str] = []
    monkeypatch.setattr(
        training_step,
        "least_times_apart",
        lambda make, variants, repeats: [timed.append(name) or 2.0 for name, *_ in variants],
    )
    monkeypatch.setattr(training_step, "peak_memory", lambda make, name, *size: 2**20)
    training_step.main(*SIZE)
    said, slow = capsys.readouterr().out, given_cpu["bf16 slower"] > 1
    assert ("ours, bf16" in timed, "ours, bf16 / released" in said) == (not slow, not slow)
    assert ("bf16 is left out: this CPU multiplies 24 times slower with it" in said) == slow
    assert said.endswith(
        "ours 2000.0 ms, its matrix products alone 2000.0 ms: 1.00 times its products\n"
    )


def test_a_program_from_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that it started would read its program from a file named <stdin>, die, and be
    started again.
    """
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "<stdin>", raising=False)
    with pytest.raises(InputError, match="standard input is none; run `python -m "):
        measure.least_times_apart(training_step.training_step, [("ours", *SIZE)], 1)
    with pytest.raises(InputError, match="standard input"):
        measure.peak_memory(training_step.training_step, "ours", *SIZE)

"""The benchmark for a GPU runs from end to end, on the CPU and small."""

from __future__ import annotations

import re
from typing import Any

import pytest

from benchmarks import gpu
from pipeline.foundation.parts.errors import InputError


@pytest.mark.slow
def test_every_comparison_is_printed_with_its_ratio(
    capsys: Any, given_cpu: dict[str, float]
) -> None:
    gpu.main("cpu", gpu.TINY, repeats=1)
    first, *lines = capsys.readouterr().out.splitlines()
    slow = given_cpu["bf16 slower"] > 1
    if slow:
        assert lines.pop(0) == "bf16 is left out: this CPU multiplies 24 times slower with it"
    assert first.startswith("cpu: ")
    names = [line.split("  ")[0] for line in lines]
    expected = [
        "extraction of 12 images, fp32",
        "extraction of 12 images, bf16",
        "training step of 4 pairs, fp32",
        "training step of 4 pairs, bf16",
        "adpool [4, 5, 8]",
        "gpo [4, 5, 8]",
        "ranking 20 x 100, by the CPU",
    ]
    assert names == [name for name in expected if not slow or "bf16" not in name]
    for line in lines:
        ours, bare, ratio = map(float, re.findall(r"(\d+\.\d+)", line.partition("ours")[2]))
        assert ours > 0
        assert ratio == pytest.approx(bare / ours, abs=0.01 + 0.01 / ours)


def test_a_gpu_that_is_not_here_is_said() -> None:
    with pytest.raises(InputError, match="device 'cuda:99' is not available"):
        gpu.main("cuda:99", gpu.TINY)

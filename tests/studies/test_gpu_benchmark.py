"""The benchmark for a GPU runs from end to end, on the CPU and small."""

from __future__ import annotations

import re
from typing import Any

import pytest

from benchmarks import gpu
from pipeline.compute import half
from pipeline.errors import InputError


def test_every_comparison_is_printed_with_its_ratio(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half, "slowdown", lambda precision: 0.5)
    gpu.main("cpu", gpu.TINY, repeats=1)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("cpu: ")
    names = [line.split("  ")[0] for line in lines]
    assert names == ["extraction of 12 images, fp32", "extraction of 12 images, bf16", "training step of 4 pairs, fp32",
                     "training step of 4 pairs, bf16", "adpool [4, 5, 8]", "gpo [4, 5, 8]",
                     "ranking 20 x 100, by the CPU"]
    for line in lines:
        ours, bare, ratio = map(float, re.findall(r"(\d+\.\d+)", line.partition("ours")[2]))
        assert ours > 0
        assert ratio == pytest.approx(bare / ours, abs=0.01 + 0.01 / ours)


def test_a_gpu_that_is_not_here_is_said() -> None:
    with pytest.raises(InputError, match="device 'cuda:99' is not available"):
        gpu.main("cuda:99", gpu.TINY)

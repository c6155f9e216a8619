"""Numbers do not change unless a version says so."""

from __future__ import annotations

from typing import Any

import golden
import numpy as np
import pytest

from pipeline.foundation.artefacts import code
from pipeline.make.heads.pooling import mean

pytestmark = pytest.mark.slow

SLOW = ("butd", "grid-feats", "training", "scorers/")
# Parts that write pages and drawings, whose numbers are those of other parts.
WITHOUT_NUMBERS = {"tables", "figures", "report"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if any(part in name for part in SLOW) else [])
        for name in golden.MAKE
    ],
)
def test_numbers_are_those_of_the_version(name: str) -> None:
    assert golden.differs(name, golden.read()) == ""


def test_golden_values_are_of_parts_that_there_are() -> None:
    assert golden.read().keys() == golden.MAKE.keys()
    assert set(golden.MAKE) | WITHOUT_NUMBERS >= set(code.RAISED)


def test_a_change_of_numbers_needs_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    written, name = golden.read(), "poolings/mean"
    before: Any = mean.MeanPool.pool
    monkeypatch.setattr(mean.MeanPool, "pool", lambda *given: before(*given) * np.float32(1.001))
    assert golden.differs(name, written).startswith(f"{name} gives other numbers: ")
    monkeypatch.setitem(code.RAISED, name, 2)
    assert (
        golden.differs(name, written)
        == f"{name} was raised; write its new values: python tests/golden.py {name}"
    )
    written[name] = {"version": 2, "values": golden.part(name)}
    assert golden.differs(name, written) == ""
    assert "has no golden values" in golden.differs(name, {})

"""Options of poolings and objectives come from a settings file: what is of another type is refused
in one line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pipeline.foundation.parts.errors import InputError
from pipeline.make.heads import objectives, pooling


def of_width_8(name: str, **options: Any) -> torch.nn.Module:
    return pooling.build(name, 8, **options)


@pytest.mark.parametrize(
    ("build", "name", "option", "value", "expected"),
    [
        (of_width_8, "kmax", "k", 2.5, "valid integer"),
        (of_width_8, "kmax", "k", "5", "valid integer"),
        (of_width_8, "kmax", "k", True, "valid integer"),
        (of_width_8, "fspool", "pieces", 2.5, "valid integer"),
        (of_width_8, "gcn", "layers", 1.5, "valid integer"),
        (of_width_8, "gcn", "readout", None, "'"),
        (of_width_8, "lip", "amplification", "a", "number"),
        (of_width_8, "gem", "p", float("inf"), "number"),
        (of_width_8, "gpo", "generator", ["a"], "'"),
        (of_width_8, "gpo", "per_dimension", 1, "valid boolean"),
        (of_width_8, "adpool", "token", "false", "valid boolean"),
        (of_width_8, "adpool", "balance", True, "valid number|'learned'"),
        (of_width_8, "adpool", "balance", None, "valid number|'learned'"),
        (objectives.build, "adopt", "temperature", "x", "number"),
        (objectives.build, "infonce", "temperature", float("nan"), "number"),
        (objectives.build, "triplet", "margin", "a", "number"),
        (objectives.build, "triplet", "all_negatives_epochs", 0.5, "valid integer"),
        (objectives.build, "constant_k", "k", {"a": 1}, "valid integer"),
    ],
)
def test_a_value_of_another_type_is_refused(
    build: Callable[..., Any], name: str, option: str, value: Any, expected: str
) -> None:
    with pytest.raises(InputError, match=f" {name}: {option}: .*{expected}.*, got"):
        build(name, **{option: value})


def test_whole_numbers_are_numbers() -> None:
    assert objectives.build("triplet", margin=1)(torch.zeros(2, 2)) == 4
    of_width_8("adpool", balance=1)
    with pytest.raises(InputError, match="greater than or equal to 0"):
        objectives.build("triplet", all_negatives_epochs=-1)

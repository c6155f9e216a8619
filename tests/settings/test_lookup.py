"""Options of poolings and objectives come from a settings file: what is of another type is refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pipeline.heads import objectives, pooling
from pipeline.parts.errors import InputError


def of_width_8(name: str, **options: Any) -> torch.nn.Module:
    return pooling.build(name, 8, **options)


@pytest.mark.parametrize(("build", "name", "option", "value", "expected"), [
    (of_width_8, "kmax", "k", 2.5, "int"),
    (of_width_8, "kmax", "k", "5", "int"),
    (of_width_8, "kmax", "k", True, "int"),
    (of_width_8, "fspool", "pieces", 2.5, "int"),
    (of_width_8, "gcn", "layers", 1.5, "int"),
    (of_width_8, "gcn", "readout", None, "str"),
    (of_width_8, "lip", "amplification", "a", "float"),
    (of_width_8, "gem", "p", float("inf"), "float"),
    (of_width_8, "gpo", "generator", ["a"], "str"),
    (of_width_8, "gpo", "per_dimension", 1, "bool"),
    (of_width_8, "adpool", "token", "false", "bool"),
    (of_width_8, "adpool", "balance", True, r"str \| float"),
    (of_width_8, "adpool", "balance", None, r"str \| float"),
    (objectives.build, "adopt", "temperature", "x", "float"),
    (objectives.build, "infonce", "temperature", float("nan"), "float"),
    (objectives.build, "triplet", "margin", "a", "float"),
    (objectives.build, "triplet", "all_negatives_epochs", 0.5, "int"),
    (objectives.build, "constant_k", "k", {"a": 1}, "int"),
])
def test_a_value_of_another_type_is_refused(build: Callable[..., Any], name: str, option: str, value: Any,
                                            expected: str) -> None:
    with pytest.raises(InputError, match=f"'{name}': its {option} must be {expected}, got"):
        build(name, **{option: value})


def test_whole_numbers_are_numbers() -> None:
    assert objectives.build("triplet", margin=1)(torch.zeros(2, 2)) == 4
    of_width_8("adpool", balance=1)
    with pytest.raises(InputError, match="must not be negative"):
        objectives.build("triplet", all_negatives_epochs=-1)

"""Objectives: from a similarity matrix to a loss. A new one is a file here and a line in `OBJECTIVES`."""

from __future__ import annotations

from typing import Any

from pipeline.objectives.adopt import AdOpt
from pipeline.objectives.base import Objective
from pipeline.objectives.constant_k import ConstantK
from pipeline.objectives.infonce import InfoNCE
from pipeline.objectives.random_k import RandomK
from pipeline.objectives.triplet import Triplet
from pipeline.settings.lookup import build_by_name

OBJECTIVES: dict[str, type[Objective]] = {
    "adopt": AdOpt,
    "constant_k": ConstantK,
    "infonce": InfoNCE,
    "random_k": RandomK,
    "triplet": Triplet,
}


def build(name: str, **options: Any) -> Objective:
    """Build an objective by name.

    Args:
        name: a key of `OBJECTIVES`.
        options: the objective's own; its class documents them.

    Returns:
        a module (similarity [B, B], same_image [B, B] or None) -> scalar; `Objective.forward` documents it.

    Raises:
        InputError: for an unknown name or option (the message lists the known ones) or a refused value.
    """
    return build_by_name("objective", OBJECTIVES, name, **options)

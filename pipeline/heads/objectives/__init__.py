"""Objectives: from a similarity matrix to a loss. A new one is a file here and a line in `OBJECTIVES`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.heads.objectives.base import Objective

OBJECTIVES: lazy.LookupTable[type[Objective]] = lazy.LookupTable({
    "adopt": "pipeline.heads.objectives.adopt:AdOpt",
    "constant_k": "pipeline.heads.objectives.infonce:ConstantK",
    "crcl": "pipeline.heads.objectives.infonce:CRCL",
    "infonce": "pipeline.heads.objectives.infonce:InfoNCE",
    "random_k": "pipeline.heads.objectives.infonce:RandomK",
    "triplet": "pipeline.heads.objectives.triplet:Triplet",
}, "objectives")


def build(name: str, **options: Any) -> Objective:
    """Build an objective by name.

    Args:
        name: a key of `OBJECTIVES`.
        options: The objective's own; its class documents them.

    Returns:
        a module (similarity [B, B], same_image [B, B] or None) -> scalar; `Objective.forward` documents it.

    Raises:
        InputError: For an unknown name or option (the message lists the known ones) or a refused value.
    """
    from pipeline.settings.section import build_by_name

    return build_by_name("objective", OBJECTIVES, name, **options)


lazy.offer(__name__)

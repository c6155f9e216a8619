"""Objectives: from a similarity matrix to a loss. A new one is a file here and a line in
`OBJECTIVES`.
"""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.heads.objectives.base import Objective

lazy.imports(__name__)

OBJECTIVES: "lazy.LookupTable[type[Objective]]" = lazy.LookupTable(
    {
        "adopt": "pipeline.heads.objectives.adopt:AdOpt",
        "constant_k": "pipeline.heads.objectives.infonce:ConstantK",
        "crcl": "pipeline.heads.objectives.infonce:CRCL",
        "infonce": "pipeline.heads.objectives.infonce:InfoNCE",
        "random_k": "pipeline.heads.objectives.infonce:RandomK",
        "sigmoid": "pipeline.heads.objectives.sigmoid:Sigmoid",
        "triplet": "pipeline.heads.objectives.triplet:Triplet",
    },
    "objectives",
    base="pipeline.heads.objectives.base:Objective",
)
build = OBJECTIVES.build

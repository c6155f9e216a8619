"""Objectives: from a similarity matrix, or the vectors behind it, to a loss. A new one is a file
here and a line in `OBJECTIVES`.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.make.heads.objectives.base import Objective

lazy.imports(__name__)

OBJECTIVES: "lazy.LookupTable[type[Objective]]" = lazy.LookupTable(
    {
        "adopt": "pipeline.make.heads.objectives.adopt:AdOpt",
        "constant_k": "pipeline.make.heads.objectives.infonce:ConstantK",
        "crcl": "pipeline.make.heads.objectives.infonce:CRCL",
        "infonce": "pipeline.make.heads.objectives.infonce:InfoNCE",
        "matryoshka": "pipeline.make.heads.objectives.matryoshka:Matryoshka",
        "random_k": "pipeline.make.heads.objectives.infonce:RandomK",
        "sigmoid": "pipeline.make.heads.objectives.sigmoid:Sigmoid",
        "triplet": "pipeline.make.heads.objectives.triplet:Triplet",
    },
    "objectives",
    base="pipeline.make.heads.objectives.base:Objective",
)
build = OBJECTIVES.build

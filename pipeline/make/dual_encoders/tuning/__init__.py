"""Dual encoders trained on: which weights, how, and the folder that holds them.

weights.py   which weights are trained: projections, the last blocks, all
lora.py      low-rank adapters, which are trained instead
network.py   a dual encoder as a network that the loop trains
job.py       what is trained, into which folder, from what
course.py    its batches of photographs and captions, its step, its measurement on val
tuned.py     the result as a dual encoder
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.make.dual_encoders.tuning.weights import Weights

lazy.imports(__name__)

TUNINGS: "lazy.LookupTable[type[Weights]]" = lazy.LookupTable(
    {
        "all": "pipeline.make.dual_encoders.tuning.weights:All",
        "blocks": "pipeline.make.dual_encoders.tuning.weights:Blocks",
        "lora": "pipeline.make.dual_encoders.tuning.lora:LoRA",
        "projections": "pipeline.make.dual_encoders.tuning.weights:Projections",
    },
    "tunings",
    "choice of weights",
    base="pipeline.make.dual_encoders.tuning.weights:Weights",
)

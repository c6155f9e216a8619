"""Poolings: from a set of items to one vector. A new one is a file here and a line in
`POOLINGS`.
"""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.heads.pooling.base import Pooling

lazy.imports(__name__)

POOLINGS: "lazy.LookupTable[type[Pooling]]" = lazy.LookupTable(
    {
        "adapool": "pipeline.heads.pooling.mean:AdaPool",
        "adpool": "pipeline.heads.pooling.adpool:AdPool",
        "adpool_released": "pipeline.heads.pooling.adpool:ReleasedAdPool",
        "attention": "pipeline.heads.pooling.attention:AttentionPool",
        "cls": "pipeline.heads.pooling.mean:CLSPool",
        "fspool": "pipeline.heads.pooling.gpo:FSPool",
        "gcn": "pipeline.heads.pooling.attention:GCNPool",
        "gem": "pipeline.heads.pooling.mean:GeMPool",
        "gpo": "pipeline.heads.pooling.gpo:GPO",
        "kmax": "pipeline.heads.pooling.gpo:KMaxPool",
        "lip": "pipeline.heads.pooling.mean:LIPPool",
        "max": "pipeline.heads.pooling.gpo:MaxPool",
        "mean": "pipeline.heads.pooling.mean:MeanPool",
        "selfattn": "pipeline.heads.pooling.attention:SelfAttnPool",
        "seq2seq": "pipeline.heads.pooling.attention:Seq2SeqPool",
        "softpool": "pipeline.heads.pooling.mean:SoftPool",
    },
    "poolings",
    base="pipeline.heads.pooling.base:Pooling",
)
build = POOLINGS.build

"""Poolings: from a set of items to one vector. A new one is a file here and a line in
`POOLINGS`.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.foundation.settings.parts import PoolingSettings
    from pipeline.make.heads.pooling.base import Pooling

lazy.imports(__name__)

POOLINGS: "lazy.LookupTable[type[Pooling]]" = lazy.LookupTable(
    {
        "adapool": "pipeline.make.heads.pooling.mean:AdaPool",
        "adpool": "pipeline.make.heads.pooling.adpool:AdPool",
        "adpool_released": "pipeline.make.heads.pooling.adpool:ReleasedAdPool",
        "attention": "pipeline.make.heads.pooling.attention:AttentionPool",
        "cls": "pipeline.make.heads.pooling.mean:CLSPool",
        "fspool": "pipeline.make.heads.pooling.gpo:FSPool",
        "gcn": "pipeline.make.heads.pooling.attention:GCNPool",
        "gem": "pipeline.make.heads.pooling.mean:GeMPool",
        "gpo": "pipeline.make.heads.pooling.gpo:GPO",
        "kmax": "pipeline.make.heads.pooling.gpo:KMaxPool",
        "lip": "pipeline.make.heads.pooling.mean:LIPPool",
        "max": "pipeline.make.heads.pooling.gpo:MaxPool",
        "mean": "pipeline.make.heads.pooling.mean:MeanPool",
        "selfattn": "pipeline.make.heads.pooling.attention:SelfAttnPool",
        "seq2seq": "pipeline.make.heads.pooling.attention:Seq2SeqPool",
        "softpool": "pipeline.make.heads.pooling.mean:SoftPool",
    },
    "poolings",
    base="pipeline.make.heads.pooling.base:Pooling",
)
build = POOLINGS.build


def of(setting: "PoolingSettings", dimension: int) -> "Pooling":
    """Build the pooling that a setting names, of vectors of a dimension."""
    return build(setting.name, dimension, **setting.options)

"""Poolings: from a set of items to one vector. A new one is a file here and a line in `POOLINGS`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.parts import lazy
from pipeline.parts.errors import InputError

if TYPE_CHECKING:
    from pipeline.heads.pooling.base import Pooling

POOLINGS: lazy.LookupTable[type[Pooling]] = lazy.LookupTable({
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
}, "poolings")


def build(name: str, dim: int, **options: Any) -> Pooling:
    """Build a pooling by name.

    Args:
        name: a key of `POOLINGS`.
        dim: D, the dimension of the items and of the result.
        options: The pooling's own; its class documents them.

    Returns:
        a module (items [B, N, D], counts int [B]) -> [B, D]; `Pooling.forward` documents it.

    Raises:
        InputError: For an unknown name or option (the message lists the known ones) or a refused value.
    """
    from pipeline.settings.section import build_by_name

    if dim < 1:
        raise InputError(f"a pooling's dimension must be at least 1, got {dim}")
    return build_by_name("pooling", POOLINGS, name, dim, **options)


lazy.offer(__name__)

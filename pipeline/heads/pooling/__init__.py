"""Poolings: from a set of items to one vector. A new one is a file here and a line in `POOLINGS`."""

from __future__ import annotations

from typing import Any

from pipeline.errors import InputError
from pipeline.heads.pooling.adapool import AdaPool
from pipeline.heads.pooling.adpool import AdPool
from pipeline.heads.pooling.adpool_released import ReleasedAdPool
from pipeline.heads.pooling.base import Pooling
from pipeline.heads.pooling.cls import CLSPool
from pipeline.heads.pooling.fspool import FSPool
from pipeline.heads.pooling.gcn import GCNPool
from pipeline.heads.pooling.gem import GeMPool
from pipeline.heads.pooling.gpo import GPO
from pipeline.heads.pooling.kmax import KMaxPool
from pipeline.heads.pooling.lip import LIPPool
from pipeline.heads.pooling.max import MaxPool
from pipeline.heads.pooling.mean import MeanPool
from pipeline.heads.pooling.selfattn import SelfAttnPool
from pipeline.heads.pooling.seq2seq import Seq2SeqPool
from pipeline.heads.pooling.softpool import SoftPool
from pipeline.settings.lookup import build_by_name

POOLINGS: dict[str, type[Pooling]] = {
    "adapool": AdaPool,
    "adpool": AdPool,
    "adpool_released": ReleasedAdPool,
    "cls": CLSPool,
    "fspool": FSPool,
    "gcn": GCNPool,
    "gem": GeMPool,
    "gpo": GPO,
    "kmax": KMaxPool,
    "lip": LIPPool,
    "max": MaxPool,
    "mean": MeanPool,
    "selfattn": SelfAttnPool,
    "seq2seq": Seq2SeqPool,
    "softpool": SoftPool,
}


def build(name: str, dim: int, **options: Any) -> Pooling:
    """Build a pooling by name.

    Args:
        name: a key of `POOLINGS`.
        dim: D, the dimension of the items and of the result.
        options: the pooling's own; its class documents them.

    Returns:
        a module (items [B, N, D], counts int [B]) -> [B, D]; `Pooling.forward` documents it.

    Raises:
        InputError: for an unknown name or option (the message lists the known ones) or a refused value.
    """
    if dim < 1:
        raise InputError(f"a pooling's dimension must be at least 1, got {dim}")
    return build_by_name("pooling", POOLINGS, name, dim, **options)

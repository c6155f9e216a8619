"""Max pooling (MaxPool of VSE+2AD 3.2.1 and of VSE∞ 3.2)."""

from __future__ import annotations

from torch import Tensor

from pipeline.heads.pooling.base import Pooling


class MaxPool(Pooling):
    """The greatest value of each dimension over the items. No parameters."""

    title = "MaxPool"
    paper = "VSE∞, section 3.2"

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        return items.masked_fill(~valid.unsqueeze(2), float("-inf")).max(1).values

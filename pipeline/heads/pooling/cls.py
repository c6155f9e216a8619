"""The first item as the result, in the way BERT's CLS token is used (VSE∞ 5.2 and Table 6)."""

from __future__ import annotations

from torch import Tensor

from pipeline.heads.pooling.base import Pooling


class CLSPool(Pooling):
    """The first item: BERT's and ViT's CLS token, or a BiGRU's first word. Depends on the items' order."""

    title = "CLS"
    paper = "VSE∞, section 5.2"

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        return items[:, 0]

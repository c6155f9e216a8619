"""Self-attention before mean pooling: SelfAttn of VSE∞ Table 1 and of VSE+2AD Table 4."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from pipeline.heads.pooling.base import Pooling
from pipeline.heads.pooling.mean import mean_over_items


class SelfAttnPool(Pooling):
    """The mean of the items after a residual step of self-attention (one head).

    Query, key and value are projections D → D: 3 D² + 3 D parameters, 3.15 million at D = 1024; VSE∞ Table 1
    gives 3.2 million. The papers do not print the layer. Query times key overflows float32 for values beyond some 1e18.
    """

    title = "SelfAttn"
    paper = "VSE∞, Table 1"

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        attended = scaled_dot_product_attention(
            self.query(items), self.key(items), self.value(items), attn_mask=valid.unsqueeze(1)
        )
        return mean_over_items(items + attended, valid)

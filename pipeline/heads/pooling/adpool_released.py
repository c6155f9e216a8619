"""AdPool as the released code of VSE+2AD computes it, which differs from the paper."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pipeline.heads.pooling.base import Pooling

PADDING = -1000.0


class ReleasedAdPool(Pooling):
    """AdPool of the released code, for comparison and to load its checkpoints. Padding has an influence on its result.

    It differs from equations 3 to 5: the token level's weights come from ReLU(Linear(D, D)) of the
    sorted items, with a softmax over the items *per dimension*; the balance has a bias (which cancels);
    padding is −1000 when sorted and in the embedding level, then 0 in the token level, where it keeps its
    share of the softmax. Its result therefore changes with the number of padded slots, unlike every other pooling
    here; it does not depend on the values in them.
    """

    title = "AdPool (released code)"
    paper = "VSE+2AD, released code"

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.linear = nn.Linear(dim, dim)
        self.balance = nn.Linear(dim, 1)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        padding = ~valid.unsqueeze(2)
        ordered = items.masked_fill(padding, PADDING).sort(1, descending=True).values
        embedding = (ordered * ordered.softmax(1)).sum(1)
        ordered = ordered.masked_fill(padding, 0.0)
        token = (ordered * self.linear(ordered).relu().softmax(1)).sum(1)
        return torch.lerp(embedding, token, (self.balance(token) - self.balance(embedding)).sigmoid())

"""AdPool, the adaptive pooling of VSE+2AD (equations 3 to 5), and its ablations (Tables 3 and
C-2).
"""

import torch
from torch import Tensor, nn

from pipeline.make.heads.pooling.adpool_levels import both_levels, token_level
from pipeline.make.heads.pooling.base import Pooling
from pipeline.make.heads.pooling.mean import soft_maximum
from pipeline.make.heads.pooling.options import AdPoolOptions


class AdPool(Pooling):
    """A learned mixture of a token-level and an embedding-level pooling.

    - Token level (equation 3): each dimension is sorted in descending order over the items, u_m is
      the m-th
      row, θ = softmax over m of u_m · W_tok, and t_tok = Σ θ_m u_m.
    - Embedding level (equation 4): per dimension, δ = softmax over the items, and t_emb = Σ δ_i
      t_i.
    - Balance (equation 5): ω = softmax([t_tok · W_bal, t_emb · W_bal]), and t = ω_1 t_tok + ω_2
      t_emb.

    W_tok and W_bal, both [D, 1], start at zero: θ is then uniform (mean pooling) and ω one half
    each, whatever the scale of the features, while a random start can saturate either softmax. Each
    is one linear unit, so there is no symmetry to break, and its gradient at zero is not zero.

    Source: VSE+2AD, equations 3 to 5.
    """

    token_weight: Tensor
    reads_padding = False

    def __init__(self, dim: int, options: AdPoolOptions) -> None:
        super().__init__(dim)
        balance = options.balance
        both = options.token and options.embedding
        self.embedding = options.embedding
        self.W_tok: nn.Parameter | None = None
        self.W_bal: nn.Parameter | None = None
        weight: Tensor | None = None
        if options.token:
            self.W_tok = nn.Parameter(torch.zeros(dim, 1))
        if balance != "learned":
            weight = fixed_balance(balance)
        elif both:
            self.W_bal = nn.Parameter(torch.zeros(dim, 1))
        # In the state dict, so that a checkpoint keeps the drawn weight.
        self.register_buffer("token_weight", weight if both else None)

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        if self.W_tok is None:
            return soft_maximum(items, valid)
        if not self.embedding:
            return token_level(items, valid, self.W_tok)
        return self._mix(*both_levels(items, valid, self.W_tok))

    def _mix(self, token: Tensor, embedding: Tensor) -> Tensor:
        if self.W_bal is None:
            return torch.lerp(embedding, token, self.token_weight)
        # The softmax over two logits is the sigmoid of their difference.
        return torch.lerp(embedding, token, ((token - embedding) @ self.W_bal).sigmoid())


def fixed_balance(balance: str | float) -> Tensor:
    """Choose the token level's weight, a scalar in 0..1; "random" draws one."""
    if isinstance(balance, str):
        return torch.rand(())
    return torch.tensor(float(balance))


# AdPool as the released code of VSE+2AD computes it, which differs from the paper.
PADDING = -1000.0


class ReleasedAdPool(Pooling):
    """AdPool of the released code, for comparison and to load its checkpoints. Padding has an
    influence on its result.

    It differs from equations 3 to 5: the token level's weights come from ReLU(Linear(D, D)) of the
    sorted items, with a softmax over the items *per dimension*; the balance has a bias (which
    cancels); padding is −1000 when sorted and in the embedding level, then 0 in the token level,
    where it keeps its share of the softmax. Its result therefore changes with the number of padded
    slots, unlike every other pooling here; it does not depend on the values in them.

    Source: VSE+2AD, released code.
    """

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
        theta = self.linear(ordered).relu().softmax(1)
        token = (ordered * theta).sum(1)
        omega = (self.balance(token) - self.balance(embedding)).sigmoid()
        return torch.lerp(embedding, token, omega)

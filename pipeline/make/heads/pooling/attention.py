"""Poolings that relate items: attention by one linear layer (HGR; Chen et al., CVPR 2020), and
others.
"""

from torch import Tensor, nn
from torch.compiler import is_exporting
from torch.nn.functional import scaled_dot_product_attention
from torch.nn.utils.rnn import pack_padded_sequence

from pipeline.make.heads.pooling.base import Pooling, masked_softmax
from pipeline.make.heads.pooling.mean import mean_over_items
from pipeline.make.heads.pooling.options import GCNPoolOptions
from pipeline.make.text.gru import states_in_graph


class AttentionPool(Pooling):
    """The mean of the items, weighted by the softmax of a linear function of each: D + 1
    parameters.

    Source: HGR, sections 3.1 and 3.2.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.score = nn.Linear(dim, 1)

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        weights = masked_softmax(self.score(items), valid.unsqueeze(2), dim=1)
        return (weights * items).sum(1)


# Self-attention before mean pooling: SelfAttn of VSE∞ Table 1 and of VSE+2AD Table 4.
class SelfAttnPool(Pooling):
    """The mean of the items after a residual step of self-attention (one head).

    Query, key and value are projections D → D: 3 D² + 3 D parameters, 3.15 million at D = 1024;
    VSE∞ Table 1 gives 3.2 million. The papers do not print the layer. Query times key overflows
    float32 for values beyond some 1e18.

    Source: VSE∞, Table 1.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.query, self.key, self.value = (nn.Linear(dim, dim) for _ in range(3))

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        # One head.
        query = self.query(items).unsqueeze(1)
        key = self.key(items).unsqueeze(1)
        value = self.value(items).unsqueeze(1)
        attended = scaled_dot_product_attention(query, key, value, attn_mask=valid[:, None, None])
        return mean_over_items(items + attended.squeeze(1), valid)


# Graph convolution over the items before pooling: GCN of VSE∞ Table 1 and VSE+2AD Table 4.
class GCNPool(Pooling):
    """Items reason over their relations (VSRN; Li et al. 2019), then are pooled by their mean or by
    a GRU.

    The affinity is a product of two projections of the items, so values beyond some 1e18 overflow
    it in float32.

    Source: Li et al. 2019.
    """

    def __init__(self, dim: int, options: GCNPoolOptions) -> None:
        super().__init__(dim)
        self.layers = nn.ModuleList(RelationLayer(dim) for _ in range(options.layers))
        self.gru: nn.GRU | None = None
        if options.readout == "seq2seq":
            self.gru = nn.GRU(dim, dim, batch_first=True)

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        for layer in self.layers:
            items = layer(items, valid)
        if self.gru is None:
            return mean_over_items(items, valid)
        return last_state(self.gru, items, valid)


class RelationLayer(nn.Module):
    """One step V + (R V W_g) W_r of VSRN, with R the row-normalised affinity of two projections of
    V.

    The rows of R are a softmax, which bounds R for features of any scale. W_r starts at zero, so
    that a new layer changes nothing. (In VSRN a BatchNorm does that, through which padding and
    other samples would have an influence.)
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.theta, self.phi, self.W_g, self.W_r = (nn.Linear(dim, dim) for _ in range(4))
        nn.init.zeros_(self.W_r.weight)
        nn.init.zeros_(self.W_r.bias)

    def forward(self, items: Tensor, valid: Tensor) -> Tensor:
        """Apply the step to items [B, N, D]; padded values of the result are unspecified."""
        products = self.theta(items) @ self.phi(items).transpose(1, 2)
        affinity = products * items.shape[2] ** -0.5
        relations = masked_softmax(affinity, valid.unsqueeze(1), dim=2)
        return items + self.W_r(relations @ self.W_g(items))


# A recurrent encoder as the pooling: Seq2Seq of VSE∞ Table 1 and of VSE+2AD Table 4.
class Seq2SeqPool(Pooling):
    """The last state of a GRU that reads the items. Depends on their order.

    One layer of D units, 6 D² + 6 D parameters: 6.3 million at D = 1024, the size that VSE∞ Table 1
    gives.

    Source: VSE∞, Table 1.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        return last_state(self.gru, items, valid)


def last_state(gru: nn.GRU, items: Tensor, valid: Tensor) -> Tensor:
    """Read a sample's items with a GRU of one layer: [B, D], the state after each sample's last
    valid item.
    """
    counts = valid.sum(1)
    if is_exporting():
        last = (counts - 1)[:, None, None]
        states = states_in_graph([gru], items, counts).squeeze(2)
        of_last = last.expand(-1, 1, gru.hidden_size)
        return states.gather(1, of_last).squeeze(1)
    packed = pack_padded_sequence(items, counts.cpu(), batch_first=True, enforce_sorted=False)
    return gru(packed)[1][0]

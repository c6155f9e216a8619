"""Graph convolution over the items before pooling: GCN of VSE∞ Table 1 and VSE+2AD Table 4."""

from __future__ import annotations

from torch import Tensor, nn

from pipeline.heads.pooling.base import Pooling, masked_softmax
from pipeline.heads.pooling.mean import mean_over_items
from pipeline.heads.pooling.seq2seq import last_state
from pipeline.parts.errors import InputError

READOUTS = ("mean", "seq2seq")


class GCNPool(Pooling):
    """Items reason over their relations (VSRN; Li et al. 2019), then are pooled by their mean or by a GRU.

    The affinity is a product of two projections of the items, so values beyond some 1e18 overflow it in float32.

    Args:
        dim: D.
        layers: Graph layers. 1 with the mean has the 4.2 million parameters at D = 1024 of VSE∞ Table 1's
            GCN+AvgPool; 4 with "seq2seq" has the 23.1 million of its GCN+Seq2Seq.
        readout: "mean", or "seq2seq" (which depends on the items' order).
    """

    title = "GCN"
    paper = "Li et al. 2019"

    def __init__(self, dim: int, layers: int = 1, readout: str = "mean") -> None:
        super().__init__(dim)
        if layers < 1:
            raise InputError(f"gcn needs at least 1 layer, got {layers}")
        if readout not in READOUTS:
            raise InputError(f"gcn's readout must be one of {', '.join(READOUTS)}, got {readout!r}")
        self.layers = nn.ModuleList(RelationLayer(dim) for _ in range(layers))
        self.gru = nn.GRU(dim, dim, batch_first=True) if readout == "seq2seq" else None

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        for layer in self.layers:
            items = layer(items, valid)
        return mean_over_items(items, valid) if self.gru is None else last_state(self.gru, items, valid)


class RelationLayer(nn.Module):
    """One step V + (R V W_g) W_r of VSRN, with R the row-normalised affinity of two projections of V.

    The rows of R are a softmax, which bounds R for features of any scale. W_r starts at zero, so that a new
    layer changes nothing. (In VSRN a BatchNorm does that, through which padding and other samples would have an
    influence.)
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.theta = nn.Linear(dim, dim)
        self.phi = nn.Linear(dim, dim)
        self.W_g = nn.Linear(dim, dim)
        self.W_r = nn.Linear(dim, dim)
        nn.init.zeros_(self.W_r.weight)
        nn.init.zeros_(self.W_r.bias)

    def forward(self, items: Tensor, valid: Tensor) -> Tensor:
        """Apply the step to items [B, N, D]; padded values of the result are unspecified."""
        affinity = self.theta(items) @ self.phi(items).transpose(1, 2) * items.shape[2] ** -0.5
        relations = masked_softmax(affinity, valid.unsqueeze(1), dim=2)
        return items + self.W_r(relations @ self.W_g(items))

"""A recurrent encoder as the pooling: Seq2Seq of VSE∞ Table 1 and of VSE+2AD Table 4."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from pipeline.heads.pooling.base import Pooling


class Seq2SeqPool(Pooling):
    """The last state of a GRU that reads the items. Depends on their order.

    One layer of D units, 6 D² + 6 D parameters: 6.3 million at D = 1024, the size that VSE∞ Table 1 gives.
    """

    title = "Seq2Seq"
    paper = "VSE∞, Table 1"

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        return last_state(self.gru, items, valid)


def last_state(gru: nn.GRU, items: Tensor, valid: Tensor) -> Tensor:
    """Read a sample's items with a GRU of one layer: [B, D], the state after each sample's last valid item."""
    packed = pack_padded_sequence(items, valid.sum(1).cpu(), batch_first=True, enforce_sorted=False)
    return gru(packed)[1][0]

"""GPO's coefficient generators g(k, N): from a set's positions to one score each (VSE∞ 3.3, B.1, B.3)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pipeline.errors import InputError
from pipeline.heads.pooling.interpolate import interpolate_knots

HEADS = 4


class BiGRUGenerator(nn.Module):
    """VSE∞ equation 5: a BiGRU whose directions are averaged, then a linear unit without bias.

    Args:
        inputs: width of what it reads.
        width: of its states.
        outputs: scores for each position: 1, or D when dimensions have their own.
    """

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, width, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(width, outputs, bias=False)

    def forward(self, encoded: Tensor, counts: Tensor) -> Tensor:
        """Encoded positions [U, N, inputs] and set sizes [U], the greatest N, to scores [U, N, outputs]."""
        packed = pack_padded_sequence(encoded, counts.cpu(), batch_first=True, enforce_sorted=False)
        states = pad_packed_sequence(self.gru(packed)[0], batch_first=True)[0]
        return self.linear(states.unflatten(2, (2, -1)).mean(2))


class TransformerGenerator(nn.Module):
    """A Transformer encoder of one layer in the BiGRU's place (VSE∞ Table 8). Arguments as there.

    The paper prints no more of it. Here the layer is torch's own: 4 heads, and each norm after its sum.

    Raises:
        InputError: if the width is not a multiple of 4.
    """

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        if width % HEADS:
            raise InputError(f"gpo's transformer has {HEADS} heads: its width must be a multiple, got {width}")
        self.project = nn.Linear(inputs, width)
        self.layer = nn.TransformerEncoderLayer(
            width, nhead=HEADS, dim_feedforward=4 * width, dropout=0.0, batch_first=True
        )
        self.linear = nn.Linear(width, outputs, bias=False)

    def forward(self, encoded: Tensor, counts: Tensor) -> Tensor:
        """Encoded positions [U, N, inputs] and set sizes [U], the greatest N, to scores [U, N, outputs]."""
        padding = torch.arange(encoded.shape[1], device=encoded.device) >= counts.unsqueeze(1)
        return self.linear(self.layer(self.project(encoded), src_key_padding_mask=padding))


class MLPGenerator(nn.Module):
    """Each position by itself, blind to the set's size (VSE∞ B.3). Arguments as for the BiGRU."""

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs)
        )

    def forward(self, encoded: Tensor, counts: Tensor) -> Tensor:
        """Encoded positions [U, N, inputs] and set sizes [U], the greatest N, to scores [U, N, outputs]."""
        return self.layers(encoded)


class InterpolatedGenerator(nn.Module):
    """A learned vector of fixed size, interpolated to the set's (VSE∞ B.3). Reads no positions.

    Args:
        inputs: not used.
        width: the vector's size.
        outputs: as for the BiGRU.
    """

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.knots = nn.Parameter(torch.zeros(width, outputs))

    def forward(self, encoded: Tensor, counts: Tensor) -> Tensor:
        """Set sizes [U], the greatest N, to scores [U, N, outputs]."""
        return interpolate_knots(self.knots, counts)


GENERATORS: dict[str, type[nn.Module]] = {
    "bigru": BiGRUGenerator,
    "transformer": TransformerGenerator,
    "mlp": MLPGenerator,
    "interpolated": InterpolatedGenerator,
}

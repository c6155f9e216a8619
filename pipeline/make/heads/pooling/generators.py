"""GPO's coefficient generators g(k, N): from a set's positions to one score each (VSE∞ 3.3, B.1,
B.3).

A generator reads encoded positions: fixed cosines and sines, or a learned vector for each.
"""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pipeline.foundation.parts.errors import InputError

HEADS = 4


class CosSinPositions(nn.Module):
    """The encoding of VSE∞ equation 4: sine in even and cosine in odd dimensions, at falling
    frequencies.

    Positions count from zero, as in the released code, whose checkpoints expect it. The width is
    even.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        if width < 2 or width % 2:
            raise InputError(f"cos/sin positions need an even width, got {width}")
        # No buffer: a module in half precision would round the angles.
        even = torch.arange(0, width, 2, dtype=torch.float64)
        self.frequency = 10000.0 ** (-even / width)

    def forward(self, length: int) -> Tensor:
        """Encode the positions 0 … length − 1: float64 [length, width], on the CPU."""
        angle = torch.arange(length).unsqueeze(1) * self.frequency
        both = torch.stack([angle.sin(), angle.cos()], dim=2)
        return both.flatten(1)


class IndexPositions(nn.Module):
    """A learned vector for each of the longest set's positions ("Index" in VSE∞ B.3)."""

    def __init__(self, width: int, longest: int = 512) -> None:
        super().__init__()
        self.vectors = nn.Embedding(longest, width)

    def forward(self, length: int) -> Tensor:
        """Look up the vectors of the positions 0 … length − 1: [length, width]."""
        if length > self.vectors.num_embeddings:
            raise InputError(
                f"index positions know {self.vectors.num_embeddings} positions, got a set of {length}; "
                'use positions "cos_sin", which have no limit'
            )
        return self.vectors.weight[:length]


class BiGRUGenerator(nn.Module):
    """VSE∞ equation 5: a BiGRU whose directions are averaged, then a linear unit without bias.

    inputs: width of the encoded positions. width: of the states. outputs: scores for each position,
        1 or D.
    """

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, width, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(width, outputs, bias=False)

    def forward(self, encoded: Tensor, counts: Tensor) -> Tensor:
        """Score the encoded positions [U, N, inputs] of sets of sizes [U]: [U, N, outputs]."""
        packed = pack_padded_sequence(encoded, counts.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = self.gru(packed)
        states, _ = pad_packed_sequence(states, batch_first=True)
        of_directions = states.unflatten(2, (2, -1))
        return self.linear(of_directions.mean(2))


class TransformerGenerator(nn.Module):
    """A Transformer encoder of one layer instead of the BiGRU (VSE∞ Table 8); its width is a
    multiple of 4.

    The paper gives no more details. Here the layer is torch's own, with 4 heads and post-norm.
    """

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        if width % HEADS:
            raise InputError(
                f"gpo's transformer has {HEADS} heads: its width must be a multiple, got {width}"
            )
        self.project = nn.Linear(inputs, width)
        self.layer = nn.TransformerEncoderLayer(
            width, HEADS, dim_feedforward=4 * width, dropout=0.0, batch_first=True
        )
        self.linear = nn.Linear(width, outputs, bias=False)

    def forward(self, encoded: Tensor, counts: Tensor) -> Tensor:
        """Score the encoded positions [U, N, inputs] of sets of sizes [U]: [U, N, outputs]."""
        positions = torch.arange(encoded.shape[1], device=encoded.device)
        padding = positions >= counts.unsqueeze(1)
        projected = self.project(encoded)
        states = self.layer(projected, src_key_padding_mask=padding)
        return self.linear(states)


class MLPGenerator(nn.Module):
    """An MLP that scores each position by itself, without the set's size (VSE∞ B.3)."""

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, outputs),
        )

    def forward(self, encoded: Tensor, counts: Tensor) -> Tensor:
        """Score encoded positions [U, N, inputs]: [U, N, outputs]; counts are not used."""
        return self.layers(encoded)


class InterpolatedGenerator(nn.Module):
    """A learned vector of `width` values, interpolated to the set's size (VSE∞ B.3). It reads no
    positions.
    """

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.knots = nn.Parameter(torch.zeros(width, outputs))

    def forward(self, encoded: Tensor, counts: Tensor) -> Tensor:
        """Score the positions of sets of sizes [U], [U, N, outputs]; encodings are not used."""
        return interpolate_knots(self.knots, counts, encoded.shape[1])


def interpolate_knots(knots: Tensor, counts: Tensor, length: int) -> Tensor:
    """Evaluate piecewise-linear functions at the n relative positions 0, 1/(n−1), …, 1 of a set of
    n.

    C functions are given by their values [P, C] at P ≥ 2 equidistant knots over 0..1. A set of one
    reads the first knot. The result is [U, length, C]; values beyond a set's size are unspecified.
    """
    pieces = knots.shape[0] - 1
    position = torch.arange(length, device=knots.device, dtype=knots.dtype)
    last = (counts - 1).clamp(min=1).to(knots)
    ratio = position / last.unsqueeze(1)
    place = ratio.clamp(max=1.0) * pieces
    left = place.long().clamp(max=pieces - 1)
    beyond = (place - left).unsqueeze(2)
    return torch.lerp(knots[left], knots[left + 1], beyond)


POSITIONS: dict[str, type[nn.Module]] = {"cos_sin": CosSinPositions, "index": IndexPositions}
GENERATORS: dict[str, type[nn.Module]] = {
    "bigru": BiGRUGenerator,
    "transformer": TransformerGenerator,
    "mlp": MLPGenerator,
    "interpolated": InterpolatedGenerator,
}

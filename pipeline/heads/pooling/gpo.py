"""GPO, the generalized pooling operator of VSE∞ (3.2 and 3.3), and its variants (Tables 8, 11, 12 and 13)."""

import torch
from torch import Tensor

from pipeline.heads.pooling.base import Pooling, masked_softmax
from pipeline.heads.pooling.generators import GENERATORS, POSITIONS
from pipeline.heads.pooling.sort import sort_descending, sorted_sum
from pipeline.parts.errors import InputError


class GPO(Pooling):
    """v_j = Σ_k θ_k · (the k-th greatest value of dimension j), with θ = softmax over k of g(k, N).

    Args:
        dim: D.
        generator: g: "bigru" (the paper's), "transformer" (Table 8), "mlp" or "interpolated" (Table 11).
        positions: What g reads: "cos_sin" (the paper's) or "index" (Table 11).
        per_dimension: Every dimension gets its own θ (Table 12).
        data_dependent: g reads the sorted items beside the positions (Table 13).
        width: Of the positions' encoding and of g's states; the paper uses 32.
        temperature: The scores are divided by it before the softmax; the released code, and so its
            checkpoints, use 0.1.
    """

    title = "GPO"
    paper = "VSE∞, sections 3.2 and 3.3"
    reads_padding = False

    def __init__(
        self,
        dim: int,
        generator: str = "bigru",
        positions: str = "cos_sin",
        per_dimension: bool = False,
        data_dependent: bool = False,
        width: int = 32,
        temperature: float = 0.1,
    ) -> None:
        super().__init__(dim)
        if generator not in GENERATORS or positions not in POSITIONS:
            raise InputError(
                f"gpo's generator is one of {', '.join(GENERATORS)} and its positions one of "
                f"{', '.join(POSITIONS)}, got {generator!r} and {positions!r}"
            )
        if not temperature > 0:
            raise InputError(f"gpo's temperature must be positive, got {temperature}")
        if generator == "interpolated" and (data_dependent or positions == "index"):
            raise InputError(
                "gpo's interpolated generator reads no positions and no items: choose another, or leave out "
                "positions and data_dependent"
            )
        self.positions = POSITIONS[positions](width)
        inputs = width + dim if data_dependent else width
        self.generator = GENERATORS[generator](inputs, width, dim if per_dimension else 1)
        self.per_dimension = per_dimension
        self.data_dependent = data_dependent
        self.temperature = temperature

    def coefficients(self, counts: Tensor, ordered: Tensor | None = None) -> Tensor:
        """θ for sets of the given sizes [U]: [U, N, 1], or [U, N, D] if per dimension; zero beyond a set's size.

        The sorted items [U, N, D] are read by a data-dependent GPO alone.
        """
        length = int(counts.max())
        encoded = self.positions(length).to(next(self.generator.parameters())).expand(len(counts), -1, -1)
        if self.data_dependent and ordered is not None:
            encoded = torch.cat([encoded, ordered[:, :length]], dim=2)
        scores = self.generator(encoded, counts) / self.temperature
        present = torch.arange(length, device=counts.device) < counts.unsqueeze(1)
        return masked_softmax(scores, present.unsqueeze(2), dim=1)

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        counts = valid.sum(1)
        if self.data_dependent:
            ordered = sort_descending(items, valid)
            theta = self.coefficients(counts, ordered)
            return (ordered[:, : theta.shape[1]] * theta).sum(1)
        # θ depends on the size alone, so each size is computed once.
        sizes, which = counts.unique(return_inverse=True)
        theta = self.coefficients(sizes)[which]
        items, valid = items[:, : theta.shape[1]], valid[:, : theta.shape[1]]
        if self.per_dimension:
            return (sort_descending(items, valid) * theta).sum(1)
        return sorted_sum(items, valid, theta.squeeze(2))

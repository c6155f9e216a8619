"""Poolings by order: GPO of VSE∞ and its variants, K-max (VSE+2AD 3.2.1, VSE∞ 3.2), max, and sorted
items.
"""

import torch
from torch import Tensor, nn

from pipeline.make.heads.pooling.base import Pooling, by_size, masked_softmax
from pipeline.make.heads.pooling.generators import GENERATORS, POSITIONS, interpolate_knots
from pipeline.make.heads.pooling.mean import mean_over_items
from pipeline.make.heads.pooling.options import FSPoolOptions, GPOOptions, KMaxPoolOptions
from pipeline.make.heads.pooling.sort import sort_descending, sorted_sum


class GPO(Pooling):
    """v_j = Σ_k θ_k · (the k-th greatest value of dimension j), with θ = softmax over k of g(k, N).

    The generalized pooling operator (VSE∞ 3.2 and 3.3), and its variants (Tables 8, 11, 12 and 13).

    Source: VSE∞, sections 3.2 and 3.3.
    """

    reads_padding = False

    def __init__(self, dim: int, options: GPOOptions) -> None:
        super().__init__(dim)
        width = options.width
        self.per_dimension = options.per_dimension
        self.data_dependent = options.data_dependent
        self.temperature = options.temperature
        self.known: Tensor | None = None  # θ of sets of 1, 2, … items, [L, L, 1 or D], after `fix`
        self.positions = POSITIONS[options.positions](width)
        inputs = width
        if self.data_dependent:
            inputs += dim
        outputs = dim if self.per_dimension else 1
        self.generator = GENERATORS[options.generator](inputs, width, outputs)

    @torch.no_grad()
    def fix(self, longest: int) -> None:
        """Compute θ for all sizes up to `longest` once, in evaluation; one that depends on the data
        has no such θ.
        """
        if not self.data_dependent:
            self.known = self.coefficients(torch.arange(1, longest + 1))

    def coefficients(
        self, counts: Tensor, ordered: Tensor | None = None, length: int | None = None
    ) -> Tensor:
        """θ for sets of the given sizes [U]: [U, N, 1], or [U, N, D] if per dimension; zero beyond
        a set's size.

        N is `length`, by default the largest size. The sorted items [U, N, D] are read by a
        data-dependent GPO alone.
        """
        if length is None:
            length = int(counts.max())
        encoded = self.positions(length).to(next(self.generator.parameters()))
        encoded = encoded.expand(counts.shape[0], -1, -1)
        if self.data_dependent and ordered is not None:
            encoded = torch.cat([encoded, ordered[:, :length]], dim=2)
        scores = self.generator(encoded, counts) / self.temperature
        present = torch.arange(length, device=counts.device) < counts.unsqueeze(1)
        return masked_softmax(scores, present.unsqueeze(2), dim=1)

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        counts = valid.sum(1)
        if self.data_dependent:
            ordered = sort_descending(items, valid)
            _, _, length = by_size(counts, items.shape[1])
            theta = self.coefficients(counts, ordered, length)
            return (ordered[:, : theta.shape[1]] * theta).sum(1)
        # θ depends on the size alone, so each size is computed once.
        if self.known is None:
            sizes, which, length = by_size(counts, items.shape[1])
            theta = self.coefficients(sizes, length=length)[which]
        else:
            theta = self.known[counts - 1][:, : items.shape[1]]
        items = items[:, : theta.shape[1]]
        valid = valid[:, : theta.shape[1]]
        if self.per_dimension:
            return (sort_descending(items, valid) * theta).sum(1)
        return sorted_sum(items, valid, theta.squeeze(2))


class KMaxPool(Pooling):
    """The mean of each dimension's K greatest values; of all of them where there are fewer. No
    parameters.

    Source: Kalchbrenner et al. 2014.
    """

    def __init__(self, dim: int, options: KMaxPoolOptions) -> None:
        super().__init__(dim)
        self.k = options.k

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        k = min(self.k, items.shape[1])
        greatest = items.masked_fill(~valid.unsqueeze(2), float("-inf")).topk(k, dim=1).values
        # The valid slots come first, so the first k of the mask tell which of the greatest values
        # are valid.
        return mean_over_items(greatest, valid[:, :k])


# Max pooling (MaxPool of VSE+2AD 3.2.1 and of VSE∞ 3.2).
class MaxPool(Pooling):
    """The greatest value of each dimension over the items. No parameters. Source: VSE∞, section
    3.2.
    """

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        return items.masked_fill(~valid.unsqueeze(2), float("-inf")).max(1).values


# Featurewise sort pooling (FSPool; Zhang et al. 2020), a baseline of VSE∞ 5.2.
class FSPool(Pooling):
    """Σ_k f_j(k) · (the k-th greatest value of dimension j), each f_j piecewise linear in the
    relative rank.

    The learned values of all f_j start as standard normal, as in the original. The weights do not
    add up to one: the result may be greater than any item, and overflow where items are near the
    greatest float.

    Source: Zhang et al. 2020.
    """

    def __init__(self, dim: int, options: FSPoolOptions) -> None:
        super().__init__(dim)
        self.knots = nn.Parameter(torch.randn(options.pieces + 1, dim))

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        sizes, which, most = by_size(valid.sum(1), items.shape[1])
        weights = interpolate_knots(self.knots, sizes, most)[which]
        # Beyond a set's size the sorted values are zero. The division comes first, since sums may
        # overflow.
        ordered = sort_descending(items, valid)[:, :most]
        return (ordered / most * weights).sum(1) * most

"""Poolings by order: K-max (Kalchbrenner et al. 2014; VSE+2AD 3.2.1, VSE∞ 3.2), max, and sorted items."""

import torch
from torch import Tensor, nn

from pipeline.heads.pooling.base import Pooling
from pipeline.heads.pooling.generators import interpolate_knots
from pipeline.heads.pooling.mean import mean_over_items
from pipeline.heads.pooling.sort import sort_descending
from pipeline.parts.errors import InputError


class KMaxPool(Pooling):
    """The mean of each dimension's K greatest values; of all of them where there are fewer. No parameters.

    Args:
        dim: D.
        k: K. VSE+2AD A.1 uses 5 on regions, VSE∞ 3.1 uses 20 on grids.
    """

    title = "K-MaxPool"
    paper = "Kalchbrenner et al. 2014"

    def __init__(self, dim: int, k: int = 5) -> None:
        super().__init__(dim)
        if k < 1:
            raise InputError(f"kmax needs k of at least 1, got {k}")
        self.k = k

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        k = min(self.k, items.shape[1])
        greatest = items.masked_fill(~valid.unsqueeze(2), float("-inf")).topk(k, dim=1).values
        # The valid slots come first, so the first k of the mask tell which of the greatest are there.
        present = valid[:, :k]
        return mean_over_items(greatest, present)


# Max pooling (MaxPool of VSE+2AD 3.2.1 and of VSE∞ 3.2).
class MaxPool(Pooling):
    """The greatest value of each dimension over the items. No parameters."""

    title = "MaxPool"
    paper = "VSE∞, section 3.2"

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        return items.masked_fill(~valid.unsqueeze(2), float("-inf")).max(1).values


# Featurewise sort pooling (FSPool; Zhang et al. 2020), a baseline of VSE∞ 5.2.
class FSPool(Pooling):
    """Σ_k f_j(k) · (the k-th greatest value of dimension j), each f_j piecewise linear in the relative rank.

    The learned values of all f_j start as standard normal, as in the original. The weights do not add up to one: the
    result may be greater than any item, and overflow where items are near the greatest float.

    Args:
        dim: D.
        pieces: Linear pieces of each f_j; Zhang et al. use 20.
    """

    title = "FSPool"
    paper = "Zhang et al. 2020"

    def __init__(self, dim: int, pieces: int = 20) -> None:
        super().__init__(dim)
        if pieces < 1:
            raise InputError(f"fspool needs at least 1 piece, got {pieces}")
        self.knots = nn.Parameter(torch.randn(pieces + 1, dim))

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        sizes, which = valid.sum(1).unique(return_inverse=True)
        weights = interpolate_knots(self.knots, sizes)[which]
        # Beyond a set's size the sorted values are zero. Divided first: great values may overflow on the way.
        most = weights.shape[1]
        return (sort_descending(items, valid)[:, :most] / most * weights).sum(1) * most

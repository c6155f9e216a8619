"""K-max pooling (Kalchbrenner et al. 2014; K-MaxPool of VSE+2AD 3.2.1 and of VSE∞ 3.2)."""

from __future__ import annotations

from torch import Tensor

from pipeline.heads.pooling.base import Pooling
from pipeline.heads.pooling.mean import mean_over_items
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

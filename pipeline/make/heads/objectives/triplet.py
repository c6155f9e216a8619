"""The hinge-based triplet loss with hard negatives (VSE++; VSE+2AD equation 2, VSE∞ equation 1)."""

import torch
from torch import Tensor

from pipeline.make.heads.objectives.base import Objective
from pipeline.make.heads.objectives.options import TripletOptions


class Triplet(Objective):
    """Hinge loss [α − s(positive) + s(negative)]⁺ over each query's hardest negative, summed over
    both directions.

    In the papers' first epoch all negatives count instead (VSE∞ A.1): `start_epoch` switches.
    Before its first call the hardest negative is used.

    `log`: "violations", the share of queries (of both directions) whose hardest negative has a loss
        above 0, and "negatives", how many negatives of each query count: 1, or one less than the
        batch.
    """

    def __init__(self, options: TripletOptions) -> None:
        super().__init__()
        self.options = options
        self.hardest = True

    def start_epoch(self, epoch: int) -> None:
        self.hardest = epoch >= self.options.all_negatives_epochs

    def loss(self, similarity: Tensor, negatives: Tensor) -> Tensor:
        positive = similarity.diagonal()
        violation = (self.options.margin + similarity).masked_fill(~negatives, float("-inf"))
        images = (violation - positive.unsqueeze(1)).clamp(min=0)
        captions = (violation - positive.unsqueeze(0)).clamp(min=0)
        worst_caption = images.amax(1)
        worst_image = captions.amax(0)
        violated = torch.cat([worst_caption, worst_image]) > 0
        if self.hardest:
            count = 1.0
            whole = worst_caption.sum() + worst_image.sum()
        else:
            count = len(similarity) - 1.0
            whole = images.sum() + captions.sum()
        self.log = {"violations": float(violated.float().mean()), "negatives": count}
        if self.options.reduction == "mean":
            return whole / len(similarity)
        return whole

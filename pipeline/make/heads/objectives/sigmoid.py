"""The sigmoid loss of SigLIP (Zhai et al., ICCV 2023)."""

from torch import Tensor
from torch.nn.functional import logsigmoid

from pipeline.make.heads.objectives.base import Objective
from pipeline.make.heads.objectives.options import SigmoidOptions


class Sigmoid(Objective):
    """−log σ(z · (s / τ + b)) of every pair, z = 1 for a positive and −1 for a negative.

    A sum over each image's candidates, and a mean over the images.

    `log`: "negatives", one less than the batch.
    """

    def __init__(self, options: SigmoidOptions) -> None:
        super().__init__()
        self.options = options

    def loss(self, similarity: Tensor, negatives: Tensor) -> Tensor:
        self.log = {"negatives": len(similarity) - 1.0}
        logits = similarity / self.options.temperature + self.options.bias
        of_negatives = logsigmoid(-logits).masked_fill(~negatives, 0.0).sum()
        of_positives = logsigmoid(logits.diagonal()).sum()
        return -(of_negatives + of_positives) / len(similarity)

"""The loss of Matryoshka representations (Kusupati et al., NeurIPS 2022, equation 1)."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from pipeline.foundation.parts.errors import InputError
from pipeline.make.heads.objectives import OBJECTIVES
from pipeline.make.heads.objectives.base import Objective
from pipeline.make.heads.objectives.options import MatryoshkaOptions

LEAST = 16  # numbers of the shortest prefix, where none are named


class Matryoshka(Objective):
    """Another objective, summed over prefixes of the vectors, so that these can be cut after
    training.

    Each prefix is normalised anew, and the wrapped objective sees its similarities alone: AdOpt has
    a K for each prefix, and each prefix its own hardest negatives. Their epochs are this one's.

    Without `dimensions` the prefixes are d and its halves, rounded down, as long as they have 16
    numbers or more. Similarities alone are taken as those of every prefix.

    A prefix is divided by its length, which is small where it has few numbers, so short prefixes
    have the largest gradients. With weights of 1 and AdOpt all vectors became alike; with "share"
    they did not (docs/heads.md).

    `log`: as the wrapped objective, of the longest prefix.
    """

    def __init__(self, options: MatryoshkaOptions) -> None:
        super().__init__()
        self.options = options
        self.weights = [1.0]  # of the prefixes, once vectors were seen
        self.objective = OBJECTIVES.build(options.objective.name, **options.objective.options)

    def start_epoch(self, epoch: int) -> None:
        self.objective.start_epoch(epoch)

    def require(self, dimension: int | None) -> None:
        """Refuse heads without vectors, or with vectors shorter than a prefix."""
        if dimension is None:
            raise InputError(
                "the objective matryoshka cuts vectors, and late interaction and a cross-encoder of "
                "pairs alone have none; name the objective that it wraps instead"
            )
        longest = self._dimensions(dimension)[-1]
        if longest > dimension:
            raise InputError(
                f"the objective matryoshka has a prefix of {longest} numbers, but the head's vectors "
                f"have {dimension}; shorten objective.dimensions"
            )

    def of_vectors(
        self, images: Tensor, captions: Tensor, similarity: Tensor, same_image: Tensor | None
    ) -> Tensor:
        """Sum the wrapped objective over the prefixes, see `Objective.of_vectors`."""
        whole = images.shape[1]
        self.require(whole)
        dimensions = self._dimensions(whole)
        self.weights = self._weights(dimensions, whole)
        losses = []
        for dimension in dimensions:
            of_prefix = similarity
            if dimension < whole:
                of_prefix = _prefix(images, dimension) @ _prefix(captions, dimension).T
            losses.append(self.objective(of_prefix, same_image))
        self.log = self.objective.log
        return self._summed(torch.stack(losses))

    def loss(self, similarity: Tensor, negatives: Tensor) -> Tensor:
        loss = self.objective.loss(similarity, negatives)
        self.log = self.objective.log
        return self._summed(loss.expand(len(self.weights)))

    def _dimensions(self, whole: int) -> list[int]:
        """The lengths of the prefixes of vectors of a length, ascending."""
        if self.options.dimensions is not None:
            return self.options.dimensions
        halves = [whole]
        while halves[-1] // 2 >= LEAST:
            halves.append(halves[-1] // 2)
        return halves[::-1]

    def _weights(self, dimensions: list[int], whole: int) -> list[float]:
        """What the losses of prefixes of vectors of a length are multiplied by."""
        weights = self.options.weights
        if weights is None:
            return [1.0] * len(dimensions)
        if weights == "share":
            return [dimension / whole for dimension in dimensions]
        return weights

    def _summed(self, losses: Tensor) -> Tensor:
        """Sum the losses of all prefixes, each times its weight."""
        return (losses * losses.new_tensor(self.weights)).sum()


def _prefix(vectors: Tensor, dimension: int) -> Tensor:
    """The first numbers of vectors [B, d], as unit vectors."""
    return normalize(vectors[:, :dimension], dim=1)

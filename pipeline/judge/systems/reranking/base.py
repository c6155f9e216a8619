"""The interface of a scorer of pairs, and the images and captions that one is opened for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipeline.foundation.artefacts.record import without_places
from pipeline.foundation.evaluation.retrieval import Ids, Progress, Singles
from pipeline.foundation.files.digest import digest
from pipeline.foundation.settings.paths import Paths


@dataclass(frozen=True)
class PairSource:
    """The images and captions that a scorer pairs, and how it computes.

    Images and captions may be of two data sets: a query of one is paired with distractors of the
    other.
    """

    paths: Paths  # where files lie
    dataset: (
        str  # the data set that systems and heads are looked up under: what a head was trained on
    )
    images: str  # the data set of the images
    captions: str  # the data set of the captions
    device: str = "cpu"  # a torch device, for scorers with a network
    batch_size: int = 64  # how many pairs such a scorer computes at once
    split: str = "test"  # the split of the pairs, by which stored systems are looked up
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)  # of the scorer's kind


def identity(scorer: "PairScorer") -> str:
    """Digest all that a scorer's scores rest on, wherever its files are."""
    return digest(without_places(scorer.made_from))


class PairScorer(Protocol):
    """Scores pairs of an image and a caption. It is built from a name and a `PairSource`, and draws
    nothing at random.

    A pair's score must not depend on the other pairs of a call, but for rounding (1e-5).
    """

    @property
    def gives_logits(self) -> bool:
        """Whether scores are differences of two logits, whose sigmoid is a probability; else they
        are as a cosine.
        """

    @property
    def made_from(self) -> dict[str, Any]:
        """JSON values that name all that the scores rest on, by digest: a store's identity, a
        checkpoint's SHA-256.

        Results record it, and it is compared when scoring is resumed. It holds no path of this
        machine. `manifest` and `split`, if it has them, must be the retriever's; `members`,
        `features` and `untrained` are as in `training.made_of_head`, and are joined with the
        retriever's. `series` is what all seeds of the scorer are called, by default its name.
        `versions` is an optional attribute: the versions of its parts, see `artefacts.versions`.
        """

    def score(
        self, image_ids: Ids, caption_ids: Ids, progress: Progress = lambda pairs: None
    ) -> Singles:
        """Score pairs. The scorer may order them and divide them into batches as it likes.

        Args:
            image_ids: Int64 [P], ids of the manifest of `PairSource.images`. An image may occur
                many times.
            caption_ids: Int64 [P], ids of the manifest of `PairSource.captions`.
            progress: Called with the number of pairs scored so far.

        Returns:
            Float32 [P], finite; larger means more similar. A network with two classes gives the
            difference of their logits, which keeps apart what probabilities round to 1.

        Raises:
            InputError: If an image or a caption cannot be scored, because features are missing for
                instance. The message names the first.
        """

"""The requests for stores of scores and vectors. Each kind of store has a request, which its record
holds.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from pipeline.foundation import artefacts
from pipeline.foundation.artefacts import Request, Versions
from pipeline.foundation.evaluation.retrieval import of_packages
from pipeline.foundation.evaluation.retrieval.top import INDEXES
from pipeline.foundation.settings.judging import Score
from pipeline.judge.systems.reranking import SCORERS
from pipeline.judge.systems.rescoring import RESCORERS


class _MadeByParts(Request):
    """What a network computes, whose parts are not named by the other fields."""

    made_by: Versions = Field(default_factory=dict, exclude=True)  # Their versions

    def versions(self) -> Versions:
        """Collect the versions of the network's parts."""
        return self.made_by


class ScoreRequest(_MadeByParts):
    """The similarities of one split, by a head or of stored vectors."""

    kind: ClassVar[str] = "scores"

    name: str
    split: str  # The split that is ranked
    # Images or captions at once; None for stored vectors, which are multiplied as they are.
    batch_size: int | None = None
    torch: str | None = None  # The version of torch, by which a head computes

    @classmethod
    def of_head(cls, name: str, how: Score, made_by: Versions) -> Self:
        """The request for a head's scores. made_by: the versions of its parts."""
        return cls(
            name=name,
            split=how.split,
            batch_size=how.batch_size,
            torch=version("torch"),
            made_by=made_by,
        )

    def versions(self) -> Versions:
        """Collect the versions of the head's parts, and of what multiplies vectors."""
        return {**self.made_by, **artefacts.versions("scores")}


class AddRequest(Request):
    """The scores of one split that were computed elsewhere."""

    kind: ClassVar[str] = "given"

    name: str
    split: str  # The split that is ranked
    title: str  # What tables and pages call it
    scores: str  # The scores as `scores.foreign` takes them, with paths as seen from the root
    files: dict[str, str]  # Each of their files, likewise -> SHA-256
    distance: bool = False  # Whether the smallest score is best
    normalise: bool = False  # Whether vectors are divided by their lengths

    def versions(self) -> Versions:
        """Collect the version of what stores scores."""
        return artefacts.versions("scores")


class EmbedRequest(_MadeByParts):
    """The vectors of some splits, by a head or a dual encoder."""

    kind: ClassVar[str] = "vectors"

    splits: list[str]  # The splits; none for all that there are
    batch_size: int | None = None  # Images or captions at once
    torch: str | None = None  # The version of torch, by which a head computes
    # A dual encoder's settings, and the digest of its files and usage; {} for a head.
    encoder: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def of_head(cls, splits: Sequence[str], how: Score, made_by: Versions) -> Self:
        """The request for a head's vectors. made_by: the versions of its parts."""
        return cls(
            splits=list(splits), batch_size=how.batch_size, torch=version("torch"), made_by=made_by
        )


class FuseRequest(Request):
    """An ensemble."""

    kind: ClassVar[str] = "ensemble"

    name: str
    # Those whose heads it averages, as in the papers; [] for members of the user's choice.
    features: list[str] = Field(default_factory=list)
    method: str
    weights: list[float]  # One for each member, which add up to 1
    keep_common: bool = False  # Whether images that a member lacks are left out
    tuned: dict[str, Any] | None = (
        None  # How the weights were chosen on val; None if they were given
    )

    def versions(self) -> Versions:
        """Collect the versions of the fusion and of what stores scores."""
        return artefacts.versions(f"fusions/{self.method}", "scores")


class RescoreRequest(Request):
    """A system's scores after a correction."""

    kind: ClassVar[str] = "rescored"

    name: str
    rescorer: str  # The correction, a key of `RESCORERS`
    options: dict[str, Any] = Field(default_factory=dict)

    def versions(self) -> Versions:
        """Collect the versions of the correction and of what stores scores."""
        return artefacts.versions((RESCORERS, self.rescorer), "scores")


class RerankRequest(_MadeByParts):
    """A retriever's candidates in the order of a scorer of pairs."""

    kind: ClassVar[str] = "reranked"

    name: str
    named: bool = False  # Whether the user chose it
    scorer: tuple[str, str]  # The scorer's kind, a key of `SCORERS`, and its name
    options: dict[str, Any] = Field(default_factory=dict)  # The scorer's
    protocol: tuple[str, int]  # Name and number of the folds within which candidates are sought
    # How many candidates of each query are ordered; with `tune` the largest number that is tried.
    k: int | Literal["all"]
    combine: str  # How the two scores of a candidate become one
    weight: float  # The retriever's share
    tune: bool = False  # Whether k and the weight are chosen on these scores, which are of val
    # How k, `combine` and the weight were chosen on another store; None if they were given.
    tuned: dict[str, Any] | None = None
    # What finds candidates by their vectors, a key of `INDEXES`; None for the retriever's scores.
    index: str | None = None

    def versions(self) -> Versions:
        """Collect the versions of reranking, the scorer and its parts, the index, and another
        package's protocol.
        """
        index = [] if self.index is None else [(INDEXES, self.index)]
        return {
            **self.made_by,
            **artefacts.versions(
                "reranking", (SCORERS, self.scorer[0]), *index, *of_packages(self.protocol[:1])
            ),
        }

    def in_the_order_of(self, recorded: Mapping[str, Any]) -> "RerankRequest":
        """The request for the same scores of pairs, with the order of candidates that a record
        requests.
        """
        order = {key: recorded.get(key) for key in ("k", "combine", "weight", "tune", "tuned")}
        return self.model_copy(update=order)

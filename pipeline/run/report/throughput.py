"""Times in results/throughput.json: of queries, and of poolings as multiples of the one that a
paper prints as 1.0×.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from pipeline.foundation.parts.errors import refusing
from pipeline.judge.tables.table import significant

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
CAPTIONS = 5  # of each image, as in MS-COCO


class Latency(BaseModel):
    """The measured times from which that of a query is computed."""

    images_per_second: Positive  # images pooled in a second
    encode: Positive  # seconds to encode a caption alone
    # Images -> seconds to search them all for one query.
    search: Annotated[dict[int, Positive], Field(min_length=1)]
    pairs: Annotated[int, Field(gt=0)]  # how many pairs are reranked at once
    rerank: Positive  # seconds to rerank these

    def of_query(self, method: str, images: int) -> tuple[float, bool] | None:
        """Seconds of one query, and whether they are extrapolated; None if a search among so many
        was not timed.
        """
        if method == "CE":
            return images * self.rerank / self.pairs, True
        if images not in self.search:
            return None
        searched = self.encode + self.search[images]
        if method == "EMB":
            return searched, False
        return searched + self.rerank, True

    def of_evaluation(self, method: str, images: int) -> tuple[float, bool]:
        """Seconds of an evaluation in both directions, always extrapolated: from an image, a
        caption and a pair.
        """
        scored = scored_pairs(method, images, self.pairs) * self.rerank / self.pairs
        if method == "CE":
            return scored, True
        captions = CAPTIONS * images
        embedded = images / self.images_per_second + captions * self.encode
        largest = max(self.search)
        searched = 2 * CAPTIONS * images**2 * self.search[largest] / largest
        return embedded + searched + scored, True


def scored_pairs(method: str, images: int, k: int = 20) -> int:
    """How many pairs an evaluation in both directions scores, with `CAPTIONS` captions per image
    and k candidates.
    """
    if method == "EMB":
        return 0
    if method == "CE":
        return CAPTIONS * images**2
    return k * (1 + CAPTIONS) * images


class TimedQuery(BaseModel):
    """What one query took with a real scorer."""

    images: int
    k: int
    retriever: str
    scorer: str
    retrieve: float  # seconds
    both: float  # seconds, of retrieving and of reranking the best k
    ratio: float


class Throughput(BaseModel):
    """The parts of the file that tables need. What was not timed is None."""

    poolings: dict[str, Positive]  # recipe -> images a second
    methods: dict[str, str] = {}  # part -> how it was timed
    made_with: dict[str, str] = {}  # names the machine
    latency: Latency | None = None
    query: TimedQuery | None = None
    busy: bool | None = False  # whether other work ran on the machine meanwhile

    def ratios(self, base: str) -> dict[str, Decimal]:
        """Recipe -> its pooling's speed as a multiple of the base's; {} if that was not timed."""
        if base not in self.poolings:
            return {}
        base_rate = self.poolings[base]
        return {recipe: significant(rate / base_rate) for recipe, rate in self.poolings.items()}


def read(throughput: Mapping[str, Any]) -> Throughput:
    """Check a parsed results/throughput.json."""
    with refusing(ValidationError, _unreadable):
        return Throughput.model_validate(throughput)


def _unreadable(error: ValidationError) -> str:
    first_fault = error.errors()[0]
    return (
        f"the throughput of {first_fault['loc'][-1]!r} cannot be read: {first_fault['msg']}; run `pipeline lab "
        "throughput` again"
    )

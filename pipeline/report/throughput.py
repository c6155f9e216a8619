"""Times in results/throughput.json: of queries, and of poolings as multiples of the one that a
paper prints as 1.0×.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from pipeline.parts.errors import refusing
from pipeline.report.table import significant

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
CAPTIONS = 5  # of each image, as in MS-COCO


class Latency(BaseModel):
    """The measured times from which that of a query is computed."""

    images_per_second: Positive  # images pooled in a second
    encode: Positive  # seconds to encode a caption alone
    search: Annotated[
        dict[int, Positive], Field(min_length=1)
    ]  # images -> seconds to search them all for one query
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
        return (searched, False) if method == "EMB" else (searched + self.rerank, True)

    def of_evaluation(self, method: str, images: int) -> tuple[float, bool]:
        """Seconds of an evaluation in both directions, always extrapolated: from an image, a
        caption and a pair.
        """
        scored = scored_pairs(method, images, self.pairs) * self.rerank / self.pairs
        if method == "CE":
            return scored, True
        largest = max(self.search)
        embedded = images / self.images_per_second + CAPTIONS * images * self.encode
        return embedded + 2 * CAPTIONS * images**2 * self.search[largest] / largest + scored, True


def scored_pairs(method: str, images: int, k: int = 20) -> int:
    """How many pairs an evaluation in both directions scores, with `CAPTIONS` captions per image
    and k candidates.
    """
    return {"EMB": 0, "CE": CAPTIONS * images**2}.get(method, k * (1 + CAPTIONS) * images)


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
        return {
            name: significant(rate / self.poolings[base]) for name, rate in self.poolings.items()
        }


def read(throughput: Mapping[str, Any]) -> Throughput:
    """Check a parsed results/throughput.json."""
    with refusing(
        ValidationError,
        lambda error: (
            f"the throughput of {error.errors()[0]['loc'][-1]!r} cannot be read: "
            f"{error.errors()[0]['msg']}; run `pipeline lab throughput` again"
        ),
    ):
        return Throughput.model_validate(throughput)

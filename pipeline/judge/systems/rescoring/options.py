"""The options of rescorers, see `pipeline.foundation.parts.lazy.LookupTable.declared`."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from pipeline.foundation.settings import Count, Section

BankSplit: TypeAlias = Literal["train", "test"]
Positive = Annotated[float, Field(gt=0)]


class CSLSOptions(Section):
    """neighbours: k, how many captions nearest to an image, and images nearest to a caption, enter
    the mean.
    """

    neighbours: Count = 10


class NNNOptions(Section):
    """What is subtracted."""

    bank: BankSplit = "train"  # The split of the bank's queries
    neighbours: Count = (
        128  # k, the bank's queries nearest to a candidate. All where the bank has fewer.
    )
    weight: Positive = 0.75


class InvertedSoftmaxOptions(Section):
    """A softmax over a bank's queries."""

    bank: BankSplit = "train"  # The split of the bank's queries
    beta: Positive = 20.0  # β, the inverse temperature


class DualSoftmaxOptions(InvertedSoftmaxOptions):
    """As `InvertedSoftmaxOptions`."""


class QBNormOptions(InvertedSoftmaxOptions):
    """k: How many best candidates of each of the bank's queries are hubs."""

    k: Count = 1


class DBNormOptions(Section):
    """Softmaxes over two banks."""

    bank: BankSplit = "train"  # The split of both banks
    query_beta: Positive = 20.0  # β for the bank of queries
    gallery_beta: Positive = 3.0  # β for the bank of candidates

"""The options of objectives, see `pipeline.foundation.parts.lazy.LookupTable.declared`."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pipeline.foundation.settings import Count, ObjectiveSettings, Section

Least0 = Annotated[float, Field(ge=0)]
Epochs = Annotated[int, Field(ge=0)]


class InfoNCEOptions(Section):
    """temperature: τ. VSE+2AD uses 0.05."""

    temperature: Annotated[float, Field(gt=0)] = 0.05


class RandomKOptions(InfoNCEOptions):
    """InfoNCE over the hardest negatives."""

    # What the softmax's denominator holds: the negatives and the positive, as in van den Oord et
    # al. (2018) and in the released code of VSE+2AD; or "printed", the negatives alone, as in its
    # equation 6.
    denominator: Literal["with_positive", "printed"] = "with_positive"
    # Subtracted from every positive similarity: 0 in equation 6, 0.2 in the released code. It has
    # no effect with the printed denominator, which is refused.
    margin: Least0 = 0.0

    @model_validator(mode="after")
    def _margin_counts(self) -> Self:
        if self.margin and self.denominator == "printed":
            raise ValueError(
                "a margin does nothing with the printed denominator; leave one of the two out"
            )
        return self


class ConstantKOptions(RandomKOptions):
    """k: K, the number of negatives; one less than the batch if that is smaller."""

    k: Count = 1


class AdOptOptions(RandomKOptions):
    """count: The reading of K, see `AdOpt`."""

    count: Literal["printed", "released"] = "printed"


class CRCLOptions(InfoNCEOptions):
    """The released code of CRCL has these defaults."""

    weight: Least0 = 5.0
    warmup_epochs: Epochs = 2  # The number of first epochs with y = 1


class MatryoshkaOptions(Section):
    """The wrapped objective, and the prefixes of the vectors that it compares."""

    # Its name, or {name: NAME, OPTION: VALUE}
    objective: ObjectiveSettings = Field(default_factory=lambda: ObjectiveSettings(name="infonce"))
    # How many numbers each prefix has, ascending; null for d and its halves, down to 16.
    dimensions: Annotated[list[Count], Field(min_length=1)] | None = None
    # What the loss of each is multiplied by, in their order; "share" for its share of d; null for
    # 1, as in the paper.
    weights: list[Annotated[float, Field(gt=0)]] | Literal["share"] | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.objective.name == "matryoshka":
            raise ValueError("matryoshka does not wrap itself; name another objective")
        dimensions = self.dimensions or []
        if dimensions != sorted(set(dimensions)):
            raise ValueError(f"dimensions must ascend, each once; got {dimensions}")
        if isinstance(self.weights, list) and len(self.weights) != len(dimensions):
            raise ValueError(
                f"expected a weight for each of the dimensions, got {len(self.weights)} for "
                f"{len(dimensions)}"
            )
        return self


class SigmoidOptions(InfoNCEOptions):
    """temperature: τ, and bias: b. SigLIP begins with these and learns both."""

    temperature: Annotated[float, Field(gt=0)] = 0.1
    bias: float = -10.0


class TripletOptions(Section):
    """The hinge and its first epochs."""

    margin: Least0 = 0.2  # α. The papers use 0.2.
    all_negatives_epochs: Epochs = (
        1  # The number of first epochs that use all negatives. The papers use one.
    )
    # "sum" over both directions; or "mean", the sum divided by the batch (Geigle et al., equation
    # 3).
    reduction: Literal["sum", "mean"] = "sum"

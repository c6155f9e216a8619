"""The options of architectures of heads, see `LookupTable.declared`."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.foundation.settings import Count, Section


class CrossEncoderOptions(Section):
    """What a cross-encoder reads, and how it scores."""

    # Which layers of the checkpoint are kept, ascending; [] for all. Half-size: every second one
    # (figure 4).
    layers: list[Annotated[int, Field(ge=0)]] | None = None
    boxes: bool = True  # Whether the items come with boxes
    image_norm: bool = (
        False  # Whether projected items are normalised, as some of OSCAR's checkpoints need
    )
    # How many of an image's items are read, its first; None for all. OSCAR's released code reads
    # 50.
    regions: Count | None = None
    # How many word pieces of a caption are read, with [CLS] and [SEP]; None for as many as the BERT
    # has positions. OSCAR's released code reads 70.
    pieces: Annotated[int, Field(ge=3)] | None = None
    # How CE scores: "classifier", the paper's linear layer; or "cosine", ours: the cosine of the
    # pooled words and the pooled items, which were encoded together, divided by a temperature of
    # 0.05. A head that starts from EMB then begins near EMB's own scores; a new classifier would
    # begin untrained.
    pair_score: Literal["classifier", "cosine"] = "classifier"


class LateInteractionOptions(Section):
    """How words and items are compared."""

    form: Literal["max", "attention"] = "max"
    sharpness: float = 9.0  # λ of SCAN's attention

"""The options of architectures of heads, see `pipeline.parts.lazy.LookupTable.declared`."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.settings import Count, Section, Share


class CrossEncoderOptions(Section):
    """What a cross-encoder reads, and how it scores.

    Attributes:
        layers: Which layers of the checkpoint are kept, ascending; [] for all. Half-size: every second one (figure 4).
        boxes: Whether the items come with boxes.
        image_norm: Whether projected items are normalised, as some of OSCAR's checkpoints need.
        regions: How many of an image's items are read, its first; None for all. OSCAR's released code reads 50.
        pieces: How many word pieces of a caption are read, with [CLS] and [SEP]; None for as many as the BERT has
            positions. OSCAR's released code reads 70.
        pair_score: How CE scores: "classifier", the paper's linear layer; or "cosine", ours: the cosine of the pooled
            words and the pooled items, which were encoded together, divided by a temperature of 0.05. A head that
            starts from EMB then begins near EMB's own scores; a new classifier would begin untrained.
    """

    layers: list[Annotated[int, Field(ge=0)]] | None = None
    boxes: bool = True
    image_norm: bool = False
    regions: Count | None = None
    pieces: Annotated[int, Field(ge=3)] | None = None
    pair_score: Literal["classifier", "cosine"] = "classifier"


class LateInteractionOptions(Section):
    """How words and items are compared.

    Attributes:
        form: "max" or "attention".
        sharpness: λ of SCAN's attention.
    """

    form: Literal["max", "attention"] = "max"
    sharpness: float = 9.0


class HGROptions(Section):
    """Attention between frames, phrases and their neighbours.

    Attributes:
        sharpness: A factor of the attention to frames, before its softmax.
        graph_dropout: The dropout of what a node receives from its neighbours.
    """

    sharpness: float = 4.0
    graph_dropout: Share = 0.5

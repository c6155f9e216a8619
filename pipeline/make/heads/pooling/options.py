"""What poolings are called in the papers' tables, and their options, see
`pipeline.foundation.parts.lazy.LookupTable.declared`.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pipeline.foundation.settings import Count, Section

Positive = Annotated[float, Field(gt=0)]


class AdaPoolOptions(Section):
    """No options."""

    TITLE = IN_WORDS = "AdaPool"


class AdPoolOptions(Section):
    """Which levels AdPool has, and how they are weighed."""

    TITLE = IN_WORDS = "AdPool"
    token: bool = True  # False leaves the token level out (the row −tok of Table 3)
    embedding: bool = True  # False leaves the embedding level out (the row −emb of Table 3)
    # "learned" (equation 5); or the fixed weight of the token level, in 0..1 (Table C-2: 0.25, 0.5,
    # 0.75), with the rest for the embedding level; or "random": that weight is drawn once, when
    # built (Table C-2 averages over five draws: vary the seed).
    balance: Literal["learned", "random"] | Annotated[float, Field(ge=0, le=1)] = "learned"

    @model_validator(mode="after")
    def _balances_two_levels(self) -> Self:
        if not (self.token or self.embedding):
            raise ValueError(
                "it needs its token level or its embedding level; set one of them to true"
            )
        if not (self.token and self.embedding) and self.balance != "learned":
            raise ValueError(
                f"one level alone balances nothing; leave out its balance, {self.balance!r}"
            )
        return self


class ReleasedAdPoolOptions(Section):
    """No options."""

    TITLE = "AdPool (released code)"


class AttentionPoolOptions(Section):
    """No options."""

    TITLE = "Attention"


class CLSPoolOptions(Section):
    """No options."""

    TITLE = IN_WORDS = "CLS"


class FSPoolOptions(Section):
    """pieces: Linear pieces of each f_j; Zhang et al. use 20."""

    TITLE = IN_WORDS = "FSPool"
    pieces: Count = 20


class GCNPoolOptions(Section):
    """How items reason, and how they are read out."""

    TITLE = IN_WORDS = "GCN"
    # Graph layers. 1 with the mean has the 4.2 million parameters at D = 1024 of VSE∞ Table 1's
    # GCN+AvgPool; 4 with "seq2seq" has the 23.1 million of its GCN+Seq2Seq.
    layers: Count = 1
    readout: Literal["mean", "seq2seq"] = (
        "mean"  # "mean", or "seq2seq" (which depends on the items' order)
    )


class GeMPoolOptions(Section):
    """The power mean."""

    TITLE = IN_WORDS = "GeM"
    p: Positive = 3.0  # Where p starts; Radenović et al. use 3.
    floor: Positive = 1e-6  # Smaller values count as this one


class GPOOptions(Section):
    """GPO's generator g, and its variants (VSE∞ Tables 8, 11, 12 and 13)."""

    TITLE = IN_WORDS = "GPO"
    # g: "bigru" (the paper's), "transformer" (Table 8), "mlp" or "interpolated" (Table 11).
    generator: Literal["bigru", "transformer", "mlp", "interpolated"] = "bigru"
    # What g reads: "cos_sin" (the paper's) or "index" (Table 11).
    positions: Literal["cos_sin", "index"] = "cos_sin"
    per_dimension: bool = False  # Every dimension gets its own θ (Table 12)
    data_dependent: bool = False  # g reads the sorted items in addition to the positions (Table 13)
    width: Count = 32  # Of the positions' encoding and of g's states; the paper uses 32
    # The scores are divided by it before the softmax; the released code, and so its checkpoints,
    # use 0.1.
    temperature: Positive = 0.1

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.generator == "interpolated" and (self.data_dependent or self.positions == "index"):
            raise ValueError(
                "the interpolated generator reads no positions and no items: choose another, or leave out "
                "positions and data_dependent"
            )
        if self.positions == "cos_sin" and self.width % 2:
            raise ValueError(f"cos_sin positions need an even width, got {self.width}")
        return self


class KMaxPoolOptions(Section):
    """k: K. VSE+2AD A.1 uses 5 on regions, VSE∞ 3.1 uses 20 on grids."""

    TITLE = "K-MaxPool"
    k: Count = 5


class LIPPoolOptions(Section):
    """amplification: The greatest importance; Gao et al. use 12."""

    TITLE = IN_WORDS = "LIP"
    amplification: float = 12.0


class MaxPoolOptions(Section):
    """No options."""

    TITLE = "MaxPool"


class MeanPoolOptions(Section):
    """No options."""

    TITLE = "MeanPool"


class SelfAttnPoolOptions(Section):
    """No options."""

    TITLE = IN_WORDS = "SelfAttn"


class Seq2SeqPoolOptions(Section):
    """No options."""

    TITLE = IN_WORDS = "Seq2Seq"


class SoftPoolOptions(Section):
    """No options."""

    TITLE = IN_WORDS = "SoftPool"

"""The options of choices of weights, see `pipeline.foundation.parts.lazy.LookupTable.declared`."""

from typing import Annotated

from pydantic import Field

from pipeline.foundation.settings import Count, Section, Share


class BlocksOptions(Section):
    """blocks: How many of the last blocks of each tower are trained."""

    blocks: Count = 1


# A higher rank than the widest layers of dual encoders have would be no low rank.
LARGEST_RANK = 4096


class LoRAOptions(Section):
    """rank: r of the adapters. alpha: what they add is multiplied by alpha / r. dropout: of what
    they read.
    """

    rank: Annotated[Count, Field(le=LARGEST_RANK)] = 8
    alpha: Count = 16
    dropout: Share = 0.0

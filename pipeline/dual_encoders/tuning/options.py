"""The options of choices of weights, see `pipeline.parts.lazy.LookupTable.declared`."""

from pipeline.settings import Count, Section, Share


class BlocksOptions(Section):
    """blocks: How many of the last blocks of each tower are trained."""

    blocks: Count = 1


class LoRAOptions(Section):
    """rank: r of the adapters. alpha: what they add is multiplied by alpha / r. dropout: of what
    they read.
    """

    rank: Count = 8
    alpha: Count = 16
    dropout: Share = 0.0

"""The options of this package's parts, and what tables call them. Settings are checked by them, so
this module does not import torch.
"""

from typing import Literal

from pipeline.foundation.settings import Section


class MedianPoolOptions(Section):
    """even: What the median of an even number of values is: the mean of the two in the middle, or
    the lower one.
    """

    TITLE = "MedianPool"
    even: Literal["mean", "lower"] = "mean"

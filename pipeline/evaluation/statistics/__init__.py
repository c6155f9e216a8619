"""How certain recalls are: intervals over images and seeds, and tests of differences."""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.evaluation.statistics.image_hits import STATISTICS, ImageHits, pack
    from pipeline.evaluation.statistics.intervals import Interval, interval, intervals
    from pipeline.evaluation.statistics.significance import chances, compare, enough_samples, holm, over_seeds

lazy.offer(__name__)

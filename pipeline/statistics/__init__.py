"""How certain recalls are: intervals over images and seeds, and tests of differences."""

from typing import TYPE_CHECKING

from pipeline import lazy

if TYPE_CHECKING:
    from pipeline.statistics.intervals import Interval, interval, intervals
    from pipeline.statistics.per_image import STATISTICS
    from pipeline.statistics.seeds import Spread, over_seeds
    from pipeline.statistics.significance import Comparison, compare, holm

lazy.offer(__name__)

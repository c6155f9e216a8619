"""How certain recalls are: intervals over images and seeds, and tests of differences."""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.evaluation.statistics.intervals import Interval, interval, intervals
    from pipeline.evaluation.statistics.per_image import STATISTICS
    from pipeline.evaluation.statistics.seeds import Spread, over_seeds
    from pipeline.evaluation.statistics.significance import Comparison, compare, holm

lazy.offer(__name__)

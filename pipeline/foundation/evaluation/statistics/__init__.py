"""How certain recalls are: intervals over images and seeds, and tests of differences."""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.statistics.all_pairs import LEVEL
    from pipeline.foundation.evaluation.statistics.families import EveryTwo
    from pipeline.foundation.evaluation.statistics.image_hits import ImageHits, pack
    from pipeline.foundation.evaluation.statistics.intervals import interval, intervals
    from pipeline.foundation.evaluation.statistics.letters import LETTERS, letters
    from pipeline.foundation.evaluation.statistics.rank_intervals import rank_intervals
    from pipeline.foundation.evaluation.statistics.significance import (
        compare,
        deviations,
        enough_samples,
        holm,
    )
    from pipeline.foundation.evaluation.statistics.wilson import Interval

lazy.imports(__name__)

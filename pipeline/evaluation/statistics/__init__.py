"""How certain recalls are: intervals over images and seeds, and tests of differences."""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.evaluation.statistics.image_hits import ImageHits, pack
    from pipeline.evaluation.statistics.intervals import interval, intervals
    from pipeline.evaluation.statistics.letters import letters
    from pipeline.evaluation.statistics.significance import (
        LEVEL,
        chances,
        compare,
        deviations,
        enough_samples,
        holm,
    )
    from pipeline.evaluation.statistics.wilson import Interval

lazy.imports(__name__)

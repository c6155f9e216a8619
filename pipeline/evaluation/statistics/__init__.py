"""How certain recalls are: intervals over images and seeds, and tests of differences."""

from pipeline.parts import lazy

with lazy.imports(__name__):
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

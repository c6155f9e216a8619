"""The facts of a system: what its store's record, results and systems made of it say of what made
it.

    facts.py       facts as JSON; the heads, dual encoders and given scores behind a system
    base.py        what is asked of any system; scores of which nothing is known
    of_one.py      the facts of a file, a head, a dual encoder, given scores
    of_others.py   the facts of an ensemble, corrected scores, a reranked system; facts of any kind
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.judge.systems.scores.made.base import Folds, Made, Unknown
    from pipeline.judge.systems.scores.made.facts import Facts, GivenScores, Member, differences
    from pipeline.judge.systems.scores.made.of_one import (
        FINE_TUNED,
        GIVEN,
        ZERO_SHOT,
        OfEncoder,
        OfFile,
        OfGiven,
        OfHead,
        OfOne,
        lacking,
    )
    from pipeline.judge.systems.scores.made.of_others import (
        Ensemble,
        Fusion,
        MadeOfOthers,
        Reranked,
        Rescored,
        Scorer,
        no_vectors,
        papers_ensemble,
        read,
    )

lazy.imports(__name__)

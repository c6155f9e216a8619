"""Systems: what is ranked, on disk and in memory, and the numbers, runs and nearest neighbours of
one.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.judge.systems.scores import reranked

lazy.imports(__name__)

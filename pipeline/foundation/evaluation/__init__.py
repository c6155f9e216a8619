"""Arrays in, numbers out: relevance, ranks, metrics, intervals and tests."""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.foundation.evaluation import judgements

lazy.imports(__name__)

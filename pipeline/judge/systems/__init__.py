"""What is ranked, and every step from one system to another: fusion, corrections, reranking."""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.judge.systems import fusion

lazy.imports(__name__)

"""How fast things are on this machine: poolings, a query's answer, and what a cross-encoder would take."""

from typing import TYPE_CHECKING

from pipeline import lazy

if TYPE_CHECKING:
    from pipeline.studies.throughput.timing import measure

__all__ = ["measure"]

lazy.offer(__name__)

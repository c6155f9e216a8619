"""How fast things are on this machine: poolings, a query's answer, and what a cross-encoder would take."""

from pipeline.studies.throughput.timing import measure

__all__ = ["measure"]

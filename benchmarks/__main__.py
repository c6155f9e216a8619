"""Run every benchmark: `make bench`."""

from __future__ import annotations

from benchmarks import (
    extraction,
    extraction_parts,
    fusion,
    objectives,
    pairs,
    pooling,
    ranking,
    relevance,
    search,
    stores,
    training_step,
)

if __name__ == "__main__":
    for benchmark in (
        pooling,
        objectives,
        training_step,
        pairs,
        ranking,
        relevance,
        fusion,
        search,
        stores,
        extraction_parts,
        extraction,
    ):
        benchmark.main()

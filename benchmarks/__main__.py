"""Run every benchmark: `make bench`."""

from __future__ import annotations

from benchmarks import objectives, pooling

if __name__ == "__main__":
    for benchmark in (pooling, objectives):
        benchmark.main()

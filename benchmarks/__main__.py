"""Run every benchmark: `make bench`."""

from __future__ import annotations

from benchmarks import objectives, pooling, ranking, training_step

if __name__ == "__main__":
    for benchmark in (pooling, objectives, training_step, ranking):
        benchmark.main()

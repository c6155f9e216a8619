"""Experiments about the method itself: pooling patterns and throughput."""

"""Experiments on the method: pooling patterns, and times."""

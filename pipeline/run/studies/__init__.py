"""Experiments on the method and on data: pooling patterns, times, photographs that splits share."""

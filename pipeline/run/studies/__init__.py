"""Experiments on the method and on data: claims, pooling patterns, times, hard negatives, leakage,
models for mteb.
"""

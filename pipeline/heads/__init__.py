"""Heads: projections, poolings and the two-tower model that turn items and tokens into embeddings."""

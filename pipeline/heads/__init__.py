"""What turns items into embeddings: projections, poolings and the two-tower model."""

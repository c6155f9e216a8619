"""Image-text retrieval with visual-semantic embeddings: features, heads, similarities, metrics, tables."""

"""Stored similarities and embeddings, candidate pools, and nearest neighbours."""

"""Stored similarities and embeddings, candidate pools, and nearest neighbours."""

ENCODER = "encoder"
"""The key of a record's member that is a dual encoder and no head."""

"""Stored similarities and embeddings, and how candidates in them are found."""

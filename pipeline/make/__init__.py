"""Features, heads and their training."""

"""What made a result, and whether it still does."""

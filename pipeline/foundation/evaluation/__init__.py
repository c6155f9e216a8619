"""Arrays in, numbers out: relevance, ranks, metrics, intervals and tests."""

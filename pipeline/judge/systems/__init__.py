"""What is ranked, and every step from one system to another: fusion, corrections, reranking."""

"""The papers' tables and page of a run, where each number comes from, and studies."""

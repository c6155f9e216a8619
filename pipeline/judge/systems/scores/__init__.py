"""Systems: what is ranked, on disk and in memory, and the numbers, runs and nearest neighbours of
one.
"""

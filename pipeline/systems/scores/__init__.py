"""Systems: what is ranked, on disk and in memory, and the numbers, runs and nearest neighbours of one."""

# The key of a record's member that is a dual encoder and no head.
ENCODER = "encoder"

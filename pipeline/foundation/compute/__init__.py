"""How this machine computes: half precision, threads, memory, what is recorded; and workers."""

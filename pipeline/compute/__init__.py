"""How this machine computes: float32 products, half precision, threads, memory, what is recorded;
and workers.
"""

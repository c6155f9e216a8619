"""How this machine computes: kernels for float32 products, half precision, threads, memory, and what is recorded."""

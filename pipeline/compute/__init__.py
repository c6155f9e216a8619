"""How this machine computes: which kernel multiplies float32 matrices, whether bfloat16 pays, and what is recorded."""

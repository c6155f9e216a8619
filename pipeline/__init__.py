"""Image-text retrieval with visual-semantic embeddings: features, heads, similarities, metrics,
tables.

On numpy arrays, without torch: `evaluate` a matrix, `compare` two, `explain` a published number.
"""

from pipeline.parts import lazy

with lazy.imports(__name__):
    from pipeline.studies.explain import explain
    from pipeline.studies.referee import compare, evaluate

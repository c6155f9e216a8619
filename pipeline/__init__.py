"""Image-text retrieval with visual-semantic embeddings: features, heads, similarities, metrics,
tables.

On numpy arrays, without torch: `evaluate` a matrix, `compare` two, `explain` a published number.
"""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.studies.explain import explain
    from pipeline.studies.referee import compare, evaluate

lazy.imports(__name__)

"""Image-text retrieval with visual-semantic embeddings: features, heads, similarities, metrics,
tables.

On numpy arrays, without torch: `evaluate` a matrix, `compare` two, `explain` a published number.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.judge.explain import explain
    from pipeline.judge.referee import compare, evaluate

lazy.imports(__name__)

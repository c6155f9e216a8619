"""Heads and dual encoders as models of mteb, from Python: `MtebEncoder` and `MtebCrossEncoder` of
`models.py`. docs/mteb.md shows how.
"""

from pipeline.foundation.parts.extension import Extension

EXTENSION = Extension()

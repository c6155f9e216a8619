"""A trained head for other libraries: a folder of ONNX graphs of both sides, or a model of
sentence-transformers.

base.py                   what can be exported, and what the folder says of itself
onnx.py                   both sides as graphs of any batch and length, and the tokenizer
sentence_transformers.py  the caption side as modules of that library
"""

from collections.abc import Callable
from typing import Any

from pipeline.foundation.parts import lazy

# From a `Head` of two towers and an empty folder to what export.json says of the files that it
# wrote there.
EXPORTERS: "lazy.LookupTable[Callable[..., dict[str, Any]]]" = lazy.LookupTable(
    {
        "onnx": "pipeline.make.training.exporters.onnx:write",
        "sentence-transformers": "pipeline.make.training.exporters.sentence_transformers:write",
    },
    "exporters",
)

"""A trained head for other libraries: a folder of ONNX graphs of both sides, or a model of
sentence-transformers.

    onnx.py                   both sides as graphs of any batch and length, and the tokenizer
    sentence_transformers.py  the caption side as modules of that library
"""

from pipeline.foundation.parts.extension import Extension

EXTENSION = Extension(
    parts={
        "exporters": {
            "onnx": "pipeline.extensions.exporters.onnx:write",
            "sentence-transformers": "pipeline.extensions.exporters.sentence_transformers:write",
        }
    }
)

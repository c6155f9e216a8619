"""The dual encoders `st`: models of the library sentence-transformers of images and texts.

encoder.py  the class of a model, also with a vector for every token
places.py   where one is, found out before torch is imported
"""

from pipeline.foundation.parts.extension import Extension

EXTENSION = Extension(
    parts={
        "dual_encoders": {
            "st": "pipeline.extensions.sentence_transformers.encoder:SentenceTransformersEncoder"
        },
        "encoder_places": {"st": "pipeline.extensions.sentence_transformers.places:PLACES"},
    }
)

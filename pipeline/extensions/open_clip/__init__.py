"""The dual encoders `open_clip`: models in OpenCLIP's format, and checkpoints of its training.

encoder.py     the class of a model, also with an image tower of timm
checkpoint.py  what OpenCLIP's training leaves
places.py      where both are, found out before torch is imported
"""

from pipeline.foundation.parts.extension import Extension

EXTENSION = Extension(
    parts={
        "dual_encoders": {"open_clip": "pipeline.extensions.open_clip.encoder:OpenClip"},
        "encoder_places": {"open_clip": "pipeline.extensions.open_clip.places:PLACES"},
    },
    marks={"open_clip_config.json": "open_clip"},
)

"""CLIP (Radford et al., ICML 2021), and models of other data in its architecture: OpenCLIP's, MetaCLIP's."""

from __future__ import annotations

from pipeline.dual_encoders.hugging_face import TransformersEncoder


class Clip(TransformersEncoder):
    """A CLIP of `transformers`: images are cropped to their centre, captions read up to 77 tokens."""

    model_types = ("clip",)
    pads_to_limit = False

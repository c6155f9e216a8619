"""SigLIP 2 (Tschannen et al., arXiv 2502.14786), of fixed size or with images in their own aspect ratio (NaFlex)."""

from __future__ import annotations

from pipeline.dual_encoders.hugging_face import TransformersEncoder


class Siglip2(TransformersEncoder):
    """A SigLIP 2 of `transformers`: captions in lower case, padded to 64 tokens and read without a mask.

    Checkpoints of fixed size have SigLIP's architecture and say `siglip` in their config.json.
    """

    model_types = ("siglip2", "siglip")
    pads_to_limit = True
    lowers = True

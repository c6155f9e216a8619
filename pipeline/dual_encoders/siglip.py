"""SigLIP (Zhai et al., ICCV 2023): trained by a sigmoid for each pair. Its bias and scale change no order."""

from __future__ import annotations

from pipeline.dual_encoders.hugging_face import TransformersEncoder


class Siglip(TransformersEncoder):
    """A SigLIP of `transformers`: images are squashed, captions padded to 64 tokens and read without a mask.

    Its tokenizer needs the package sentencepiece, which the extra `encoders` brings.
    """

    model_types = ("siglip",)
    pads_to_limit = True

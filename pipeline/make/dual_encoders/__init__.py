"""Dual encoders: pretrained networks that embed images and captions in one space, such as CLIP.

    base.py           what every class of dual encoder offers, how one is used, and what all
                      libraries' networks need
    places.py         where an encoder's files are, found out before torch is imported
    hugging_face.py   the classes of the library `transformers`: CLIP, SigLIP, SigLIP 2
    embedding.py      images and captions into vectors; a manifest's into a store, piece by piece
    tuning/           training them on, and the result as a dual encoder
    record.py         what is recorded of an encoder and of its embeddings; one split of these

A new class is a file here, or a class in hugging_face.py, and a line in `DUAL_ENCODERS`. An
extension adds one of the same name to `dual_encoders` and `encoder_places`, see `places.Places`.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy
from pipeline.foundation.parts.errors import InputError

if TYPE_CHECKING:
    from pipeline.make.dual_encoders.base import DualEncoder, Usage

lazy.imports(__name__)

DUAL_ENCODERS: "lazy.LookupTable[type[DualEncoder]]" = lazy.LookupTable(
    {
        "clip": "pipeline.make.dual_encoders.hugging_face:Clip",
        "siglip": "pipeline.make.dual_encoders.hugging_face:Siglip",
        "siglip2": "pipeline.make.dual_encoders.hugging_face:Siglip2",
        "vision_text": "pipeline.make.dual_encoders.hugging_face:VisionText",
        "tuned": "pipeline.make.dual_encoders.tuning.tuned:Tuned",
    },
    "dual_encoders",
    "kind of dual encoder",
    base="pipeline.make.dual_encoders.base:DualEncoder",
)


def load(model: str, usage: "Usage", per_token: bool = False) -> "DualEncoder":
    """Load an encoder.

    Args:
        model: KIND:FOLDER, or KIND:NAME with a name on the Hugging Face hub; KIND is a key of
            `DUAL_ENCODERS`.
        usage: How it is used.
        per_token: Whether it may have a vector for every token, instead of one.

    Raises:
        InputError: For an unknown kind, or a model that is missing, not of this kind, or whose
            network does not take what its preprocessing prepares.
    """
    kind, place = check(model)
    from pipeline.make.dual_encoders.base import try_out

    encoder = DUAL_ENCODERS.find(kind).load(place, usage)
    if encoder.per_token and not per_token:
        raise InputError(
            f"{model}: has a vector for every token, and none of a whole image; `pipeline evaluate` takes "
            "it, with --images and --captions or --manifest"
        )
    try_out(place, encoder)
    return encoder


def check(model: str) -> tuple[str, str]:
    """Check an encoder's kind, and that its folder holds one, without importing torch or its
    library.

    Args:
        model: As for `load`.

    Returns:
        The kind, and the folder or name.

    Raises:
        InputError: For an unknown kind, or a folder that does not exist or is of another kind.
    """
    kind, colon, place = model.partition(":")
    if not colon or not place:
        raise InputError(
            f"model {model!r}: expected KIND:FOLDER or KIND:NAME, such as "
            f"clip:openai/clip-vit-base-patch32; kinds: {', '.join(DUAL_ENCODERS)}"
        )
    DUAL_ENCODERS.module(kind)
    from pipeline.make.dual_encoders import places  # and with it pydantic

    places.check(kind, place)
    return kind, place

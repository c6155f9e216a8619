"""Which array of a file is what: scores, vectors, ids, lists of the best. Found by names as tools
write them.
"""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from pipeline.evaluation.retrieval import Direction, Side
from pipeline.systems.scores.foreign.arrays import Array

# Words of names, each as a set of spellings.
SIDES: Mapping[Side, frozenset[str]] = {
    "image": frozenset(
        (
            "image",
            "images",
            "img",
            "imgs",
            "im",
            "ims",
            "visual",
            "vision",
            "picture",
            "pictures",
            "photo",
            "photos",
            "video",
            "videos",
            "vid",
        )
    ),
    "caption": frozenset(
        (
            "caption",
            "captions",
            "cap",
            "caps",
            "text",
            "texts",
            "txt",
            "txts",
            "sentence",
            "sentences",
            "sent",
            "sents",
            "language",
        )
    ),
}
SCORES = frozenset(
    (
        "sim",
        "sims",
        "similarity",
        "similarities",
        "score",
        "scores",
        "logit",
        "logits",
        "matrix",
        "mat",
        "dist",
        "dists",
        "distance",
        "distances",
        "d",
    )
)
VECTORS = frozenset(
    (
        "emb",
        "embs",
        "embed",
        "embeds",
        "embedding",
        "embeddings",
        "feat",
        "feats",
        "feature",
        "features",
        "vec",
        "vecs",
        "vector",
        "vectors",
        "rep",
        "reps",
    )
)
IDS = frozenset(
    (
        "id",
        "ids",
        "name",
        "names",
        "file",
        "files",
        "filename",
        "filenames",
        "key",
        "keys",
        "path",
        "paths",
    )
)
LISTED = frozenset(
    (
        "topk",
        "top",
        "indices",
        "index",
        "idx",
        "neighbors",
        "neighbours",
        "candidates",
        "ranking",
        "rankings",
        "rank",
        "ranks",
        "i",
    )
)
OWNERS = frozenset(
    ("captionimage", "txt2img", "text2image", "imageofcaption", "captiontoimage", "texttoimage")
)
I2T = re.compile(
    r"(^|[^a-z])(i2t|i2c|im2txt|img2txt|image2text|i_to_t|image_to_text|image_to_caption|img_to_txt|"
    r"per_image)($|[^a-z])"
)
T2I = re.compile(
    r"(^|[^a-z])(t2i|c2i|txt2im|txt2img|text2image|t_to_i|text_to_image|caption_to_image|txt_to_img|"
    r"per_text|per_caption)($|[^a-z])"
)

Kind = Literal["scores", "vectors", "ids", "owners", "listed", ""]


class Role(NamedTuple):
    """What an array is taken for."""

    kind: Kind  # "" if its name does not say it
    side: Side | None = None  # of vectors and ids
    direction: Direction | None = None  # of scores and lists


def role(name: str, array: Array) -> Role:
    """What an array is, by its name, type and shape."""
    last = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.rpartition(".")[2]).lower()
    words = frozenset(re.split(r"[^a-z0-9]+", last)) | frozenset(re.findall(r"[a-z]+", last))
    direction: Direction | None = None
    if I2T.search(last):
        direction = "i2t"
    elif T2I.search(last):
        direction = "t2i"
    side: Side | None = next((each for each, spelt in SIDES.items() if words & spelt), None)
    if len(array.shape) == 1:
        if re.sub(r"[^a-z0-9]", "", last) in OWNERS:
            return Role("owners")
        return (
            Role("ids", side)
            if array.stored == "text" or (array.is_whole and words & IDS)
            else Role("")
        )
    if len(array.shape) != 2:
        return Role("")
    if array.is_whole and words & (IDS | LISTED):
        return Role("listed", None, direction)
    if words & SCORES or direction:
        return Role("scores", None, direction)
    if side and (array.is_real or words & VECTORS):
        return Role("vectors", side)
    return Role("")

"""Equal captions: a text that stands at several images is right for each of them.

So HGR (Chen et al., CVPR 2020) and mteb evaluate: captions of one text are one query and one candidate.
"""

from __future__ import annotations

import numpy as np

from pipeline.errors import InputError
from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.collection import Collection
from pipeline.retrieval.languages import Languages
from pipeline.retrieval.relevance import Relevance


def same_text(collection: Collection, languages: Languages | None = None) -> tuple[Ids, Relevance]:
    """Merges captions of one text.

    Args:
        collection: With the captions' text; blanks around it do not count.
        languages: Text [C], of each caption; captions in different languages are not merged. None where they have none.

    Returns:
        The columns that stay, the first of each text, int64 [T] ascending; and what is right for them, [I, T].

    Raises:
        InputError: Where the text is not known.
    """
    if collection.captions is None:
        raise InputError("captions are compared by their text, which is not known: name the --manifest")
    number: dict[tuple[str, str], int] = {}
    of = [""] * len(collection.captions) if languages is None else languages.tolist()
    text = np.array([number.setdefault((language, caption.strip()), len(number))
                     for language, caption in zip(of, collection.captions, strict=True)], np.int64)
    kept = np.unique(text, return_index=True)[1]
    known = np.flatnonzero(collection.caption_image >= 0)
    pairs = np.unique(np.stack([text[known], collection.caption_image[known]]), axis=1)
    shape = len(collection.image_ids), len(kept)
    return kept, Relevance.of_pairs(pairs[1], pairs[0], shape, owner=collection.caption_image[kept])

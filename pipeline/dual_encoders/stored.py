"""The stored embeddings of a dual encoder, one split of them."""

from typing import Any, NamedTuple

import numpy as np

from pipeline.dual_encoders import record
from pipeline.evaluation.retrieval.collection import rows_of
from pipeline.manifest import Manifest, Split
from pipeline.parts.errors import InputError
from pipeline.systems.scores import layout
from pipeline.systems.scores.system import System


class SplitVectors(NamedTuple):
    """One split's vectors, in the manifest's order."""

    split: Split  # the images and captions
    images: np.ndarray  # unit vectors, float32 [I, d]
    captions: np.ndarray  # unit vectors, float32 [C, d]
    made_from: dict[str, Any]  # the record of these


def of_split(embedded: System, manifest: Manifest, name: str) -> SplitVectors:
    """Take one split's vectors from a store of several."""
    made = embedded.made_from
    if not record.is_encoder(made) and made.get("trained_on", made["dataset"]) == made["dataset"]:
        raise InputError(f"{embedded.path}: is of a head, and not of a dual encoder; score it with `pipeline score "
                         "--system`")
    if made["manifest"] != manifest.digest:
        raise InputError(f"{embedded.path}: was made with another manifest of {manifest.dataset} than is there now; "
                         "run `pipeline embed` again")
    if name not in made["members"][0].get("splits", [made["split"]]):
        raise InputError(f"{embedded.path}: holds {made['split']}, and not the split {name}; run `pipeline embed` "
                         f"with --split {name}")
    split = manifest.split(name)
    return SplitVectors(split, _rows(embedded, "image", split.image_ids), _rows(embedded, "caption", split.caption_ids),
                        record.of_split(made, name) if record.is_encoder(made) else
                        {key: value for key, value in made.items() if key != layout.CONTENTS})


def _rows(embedded: System, side: Any, wanted: np.ndarray) -> np.ndarray:
    ids = getattr(embedded, f"{side}_ids")
    rows = rows_of(ids, wanted, lambda each: f"{embedded.path}: lacks {side} {each}; run `pipeline embed` again")
    return embedded.vectors(side)[rows]

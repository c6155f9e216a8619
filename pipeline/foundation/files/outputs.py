"""Where a result may be written: to a new place, or over an earlier result of its kind."""

import os
from pathlib import Path

from pipeline.foundation.files import streams
from pipeline.foundation.parts.errors import InputError

# What a folder holds -> names by which an earlier one is recognised, finished or not. Any other
# folder must be empty.
MARKS = {
    "head": ("record.json", "record.json.partial", "best.safetensors"),
    "feature store": ("ledger", "features"),
    "exported head": ("export.json",),
    "store of embeddings": ("image_embeddings",),
}


def refuse_occupied(place: Path, kind: str | None = None) -> None:
    """Check that a result can be written to a place, and would replace nothing but an earlier
    result.
    """
    if streams.is_stream(place):
        return
    place = streams.behind_links(place)
    above = streams.nearest_folder(place)
    # A finished folder is left as it is, and needs no permission.
    if not place.is_dir() and not os.access(above, os.W_OK | os.X_OK):
        raise InputError(f"{place}: {above} cannot be written; choose another place")
    if kind is not None and place.is_dir():
        names = sorted(os.listdir(place))
        if names and not {*names} & {*MARKS[kind]}:
            raise InputError(
                f"{place}: exists, holds {names[0]} and is no {kind}; choose another --out"
            )

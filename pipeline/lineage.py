"""Whether the parts of a result belong together: all of one manifest and split, no ensemble of older heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.similarity_store import SimilarityStore
from pipeline.weights import sha256


def refuse_stale(stores: Mapping[str, SimilarityStore], head_folder: Callable[[str], Path]) -> None:
    """Raises InputError where the systems, by name, were not made from one state of things.

    All must be of one manifest and split; what an ensemble was made of must be what its members' own scores are made
    of now; and a head that is there must be the one that was scored. head_folder: from a head's name to its folder.
    """
    first = next(iter(stores.values()))
    scored: dict[str, str] = {}
    for store in stores.values():
        for key in ("manifest", "split"):
            if store.made_from[key] != first.made_from[key]:
                raise InputError(f"{store.path}: its {key} is {store.made_from[key]!r}, that of {first.path.name} "
                                 f"{first.made_from[key]!r}; score all anew")
        if store.made_from["ensemble"] is None:
            scored |= {member["head"]: member["checkpoint"] for member in store.made_from["members"]}
    for head, checkpoint in scored.items():
        file = head_folder(head) / "best.safetensors"
        if file.exists() and sha256(file) != checkpoint:
            raise InputError(f"{file}: is not the checkpoint that was scored; run `pipeline score` again for {head}, "
                             "and its ensembles")
    for store in stores.values():
        for member in _members(store):
            if member["checkpoint"] != scored.get(member["head"], member["checkpoint"]):
                raise InputError(f"{store.path}: is an ensemble of an older {member['head']} than is scored now; run "
                                 f"`pipeline ensemble {store.made_from['ensemble']}` again")


def _members(store: SimilarityStore) -> list[dict[str, Any]]:
    return store.made_from["members"] if store.made_from["ensemble"] is not None else []

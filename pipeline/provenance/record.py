"""What made a result, and whether the parts of a result belong together: all of one manifest and split, no ensemble of
older heads, seeds of one system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline import training
from pipeline.errors import InputError
from pipeline.files.digest import sha256
from pipeline.manifest import Manifest
from pipeline.provenance.head_record import HeadRecord, differences
from pipeline.scores.similarity_store import SimilarityStore
from pipeline.training import checkpoint

if TYPE_CHECKING:
    from pipeline.training import Head, Source


def made_from(folder: Path, head: Head, manifest: Manifest, split: str, source: Source, rows: np.ndarray
              ) -> dict[str, Any]:
    """What is written beside the scores or vectors of one head.

    Args:
        folder: the head's; its name is the head's.
        head: as it was opened.
        manifest: of the images.
        split: its name, or several with + between.
        source: of the images.
        rows: int64 [I], the images' rows in it.

    Returns:
        `made_from` without the digests of what is written, which the store adds (`scores/contents.py`).
    """
    said = head.description
    feature, features = said["feature"], said["features"]
    networks = _networks(head, source)
    trained = features["trained"] or networks["image"].get("weights") == training.RELEASED
    return {
        "dataset": manifest.dataset, "split": split, "recipe": said["recipe"], "ensemble": None,
        "features": {feature: features["recipe"]}, "text": said["text"], "seed": said["seed"],
        "untrained": [] if trained else [feature], "manifest": manifest.digest,
        "members": [{"head": folder.name, "checkpoint": head.checkpoint, "files": checkpoint.digests(folder),
                     "store": source.identity, "content": source.content(rows), "weights": features["weights"],
                     "feature": feature, "features": features["recipe"], "published": "origin" in said,
                     "networks": networks, "vocabulary": said["vocabulary"],
                     "settings": said["recipe_settings"] | said["training"]}]}


def _networks(head: Head, source: Source) -> dict[str, Any]:
    """As the head says; of an older one that says nothing, what can still be told."""
    if "networks" in head.description:
        recorded: dict[str, Any] = head.description["networks"]
        return recorded
    if "finetuned" in head.description:
        return {"image": {}, "text": head.text.checkpoint}
    return training.networks(source, head.text)


def refuse_other_systems(stores: Sequence[SimilarityStore]) -> None:
    """Raises InputError where stores that are to be averaged as seeds of one system are of several.

    Stores from before results said with what settings they were made are no seeds of those that do.
    """
    members = [_known(store) for store in stores]
    for store, mine in zip(stores[1:], members[1:], strict=True):
        if (members[0] is None) != (mine is None):
            older = (stores[0] if members[0] is None else store).path.stem
            raise InputError(f"{older}: does not say with what settings it was trained, other seeds do; run `pipeline "
                             "score` again for it, and its ensembles")
        if members[0] and mine and (why := differences(members[0], mine)):
            raise InputError(f"{store.path.stem}: is no seed of the system {stores[0].path.stem}: {why}; train and "
                             "score them alike, or name only those that are")


def _known(store: SimilarityStore) -> tuple[HeadRecord, ...] | None:
    try:
        return tuple(HeadRecord.of(entry) for entry in store.made_from["members"])
    except (KeyError, TypeError):
        return None


def refuse_stale(stores: Mapping[str, SimilarityStore], head_folder: Callable[[str], Path]) -> None:
    """Raises InputError where the systems, by name, were not made from one state of things.

    All must be of one manifest and split; what an ensemble was made of must be what its members' own scores are now;
    and what is there of a head must be what was there when it was scored. Of what was scored before this was recorded
    the checkpoint alone is compared. head_folder: from a head's name to its folder.
    """
    first = next(iter(stores.values()))
    scored: dict[str, Mapping[str, Any]] = {}
    for store in stores.values():
        for key in ("manifest", "split"):
            if store.made_from[key] != first.made_from[key]:
                raise InputError(f"{store.path}: its {key} is {store.made_from[key]!r}, that of {first.path.name} "
                                 f"{first.made_from[key]!r}; score all anew")
        if store.made_from["ensemble"] is None:
            scored |= {member["head"]: member for member in store.made_from["members"]}
    for head, member in scored.items():
        _refuse_another_head(head_folder(head), member)
    for store in stores.values():
        older = [member["head"] for member in _members(store)
                 if member["checkpoint"] != scored.get(member["head"], member)["checkpoint"]]
        older += [name for name, seal in _sealed(store) if name in stores and stores[name].seal != seal]
        if older:
            raise InputError(f"{store.path}: is an ensemble of an older {older[0]} than is scored now; run "
                             f"`pipeline ensemble {store.made_from['ensemble']}` again")


def _refuse_another_head(folder: Path, member: Mapping[str, Any]) -> None:
    """last.safetensors is not looked at: no result rests on it, and it is thrice as large as all the rest."""
    recorded = {"best.safetensors": member["checkpoint"], **member.get("files", {})}
    recorded.pop("last.safetensors", None)
    for name, digest in recorded.items():
        file = folder / name
        if file.exists() and sha256(file) != digest:
            what = "the checkpoint that was scored" if name == "best.safetensors" else "as it was when it was scored"
            raise InputError(f"{file}: is not {what}; run `pipeline score` again for {member['head']}, and its "
                             "ensembles")


def _members(store: SimilarityStore) -> list[dict[str, Any]]:
    return store.made_from["members"] if store.made_from["ensemble"] is not None else []


def _sealed(store: SimilarityStore) -> list[tuple[str, str]]:
    """An ensemble's members by name, with the seals that they had; [] where that was not recorded."""
    fusion = store.made_from.get("fusion") or {}
    return list(zip(fusion.get("members", ()), fusion.get("seals", ()), strict=False))

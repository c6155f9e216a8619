"""What made a result, and whether the parts of a result belong together: all of one manifest and split, no ensemble of
older heads, seeds of one system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import training
from pipeline.errors import InputError
from pipeline.files.digest import sha256
from pipeline.manifest import Manifest
from pipeline.provenance.head_record import Member, differences
from pipeline.scores.similarity_store import SimilarityStore

if TYPE_CHECKING:
    from pipeline.training import Head, Source


def made_from(name: str, head: Head, manifest: Manifest, split: str, source: Source) -> dict[str, Any]:
    """What is written beside the scores or vectors of one head. name: of its folder. source: of the images."""
    said = head.description
    feature, features = said["feature"], said["features"]
    networks = _networks(head, source)
    trained = features["trained"] or networks["image"].get("weights") == training.RELEASED
    return {
        "dataset": manifest.dataset, "split": split, "recipe": said["recipe"], "ensemble": None,
        "features": {feature: features["recipe"]}, "text": said["text"], "seed": said["seed"],
        "untrained": [] if trained else [feature], "manifest": manifest.digest,
        "members": [{"head": name, "checkpoint": head.checkpoint, "store": source.identity,
                     "weights": features["weights"], "feature": feature, "features": features["recipe"],
                     "published": "origin" in said, "networks": networks, "vocabulary": said["vocabulary"],
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


def _known(store: SimilarityStore) -> tuple[Member, ...] | None:
    try:
        return tuple(Member.of(entry) for entry in store.made_from["members"])
    except (KeyError, TypeError):
        return None


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

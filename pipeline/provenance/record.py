"""The record of what made a result, and checks that the parts of a result belong together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from pipeline import training
from pipeline.artefacts.record import FILE
from pipeline.files.digest import sha256
from pipeline.manifest import Manifest, SplitName
from pipeline.parts.errors import InputError
from pipeline.systems.scores.made import Made, Member, differences, lacking
from pipeline.systems.scores.system import System
from pipeline.training.artefact import BEST, OPENED, HeadArtefact


def made_from(head: training.Head, manifest: Manifest, split: str, source: training.ImageSource,
              rows: np.ndarray) -> Made:
    """Compose the facts of a head's scores or vectors.

    split: of one split or of several, see `SplitName`. rows: the images' rows in the source.
    """
    facts, request = head.artefact.facts, head.artefact.request
    trained = facts.features.trained or facts.networks.image.get("weights") == training.RELEASED
    of_split = np.flatnonzero(manifest.images["split"].isin(SplitName(split).parts).to_numpy())
    member = member_of(head.artefact).changed(store=source.identity, content=source.content(rows))
    return Made(
        dataset=manifest.dataset, split=split, recipe=request.name,
        features={request.feature: facts.features.recipe}, text=request.text, seed=request.seed,
        untrained=[] if trained else [request.feature], manifest=manifest.digest, languages=manifest.languages,
        lacks=lacking(manifest.left_out, int((~source.done[of_split]).sum())), members=[member])


def member_of(head: HeadArtefact) -> Member:
    """Collect the facts of a head that are those of its scores, with the features of its training."""
    facts, request = head.facts, head.request
    return Member(
        head=head.name, identity=head.record.identity, checkpoint=head.checkpoint, feature=request.feature,
        features=facts.features.recipe, networks={"image": facts.networks.image, "text": facts.networks.text},
        settings=request.settings, store=facts.store, content=facts.content or "", weights=facts.features.weights or "",
        vocabulary=facts.vocabulary, published=facts.origin is not None)


def refuse_other_systems(stores: Sequence[System]) -> None:
    """Check that stores to be averaged as seeds of one system differ only in the seed."""
    for store in stores[1:]:
        if why := differences(stores[0].made_from.members, store.made_from.members):
            raise InputError(f"{store.path.stem}: is no seed of the system {stores[0].path.stem}: {why}; train and "
                             "score them alike, or leave it out")


def with_parts(stores: Mapping[str, System]) -> dict[str, System]:
    """Add the systems that others are made from, and their heads, if their scores exist."""
    found = dict(stores)
    for store in stores.values():
        for name in (*store.made_from.heads, *(part.name for part in store.made_of)):
            path = store.path.with_name(f"{name}.zarr")
            if name not in found and path.exists():
                found[name] = System.open(path)
    return found


def refuse_stale(stores: Mapping[str, System], head_folder: Callable[[str, str], Path]) -> None:
    """Check that all systems were made from the same manifest and split, and from heads and members as they are now.

    If an ensemble's members are scored, their scores must be those that the ensemble was made of. A head must be the
    one that was scored.

    head_folder: from the data set that a head was trained on, and its name, to its folder.
    """
    first = next(iter(stores.values()))
    scored: dict[tuple[str, str], Member] = {}
    for store in stores.values():
        for key in ("manifest", "split"):
            mine, wanted = getattr(store.made_from, key), getattr(first.made_from, key)
            if mine != wanted:
                raise InputError(f"{store.path}: its {key} is {mine!r}, that of {first.path.name} {wanted!r}; score "
                                 "all again")
        if not store.made_from.is_made_of_others:
            scored |= {(store.made_from.training_data, member.head): member for member in store.made_from.members}
    for head, member in scored.items():
        if member.is_head:
            _refuse_another_head(head_folder(*head), member)
    for store in stores.values():
        _refuse_another_scorer(store, head_folder)
        made = store.made_from
        older = [member.head for member in made.members if made.is_made_of_others
                 and member.checkpoint != scored.get((made.training_data, member.head), member).checkpoint]
        older += [part.name for part in store.made_of
                  if part.name in stores and stores[part.name].reference.identity != part.identity]
        if older:
            what, again = store.made_from.made_again(store.name)
            raise InputError(f"{store.path}: is {what} of an older {older[0]} than the current one; run "
                             f"`pipeline {again}` again")


def _refuse_another_scorer(store: System, head_folder: Callable[[str, str], Path]) -> None:
    """Compare the checkpoint of a head that scored pairs with the recorded digest."""
    scorer = store.made_from.reranked.scorer if store.made_from.reranked else {}
    if "checkpoint" in scorer:
        file = head_folder(store.made_from.training_data, scorer["name"]) / "best.safetensors"
        if file.exists() and sha256(file) != scorer["checkpoint"]:
            raise InputError(f"{file}: is not the checkpoint by which {store.path.stem} was reranked; run `pipeline "
                             f"{store.made_from.made_again(store.name)[1]}` again")


def _refuse_another_head(folder: Path, member: Member) -> None:
    """Check that a head, if it is there, is the one that was scored."""
    if (folder / FILE).exists():
        same = HeadArtefact.open(folder, *OPENED).record.identity == member.identity
    else:  # its record is lost
        same = not (folder / BEST).exists() or sha256(folder / BEST) == member.checkpoint
    if not same:
        raise InputError(f"{folder}: is not the head that was scored; run `pipeline score` again for {member.head}, "
                         "then `pipeline ensemble`")

"""What is recorded of a dual encoder and of its embeddings, and how both are read again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.foundation import artefacts
from pipeline.foundation.artefacts import record as records
from pipeline.foundation.files import weights
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest import Manifest, Split, SplitName
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores import layout
from pipeline.judge.systems.scores.made import Made, Member, OfEncoder, OfOne, lacking
from pipeline.judge.systems.scores.system import System
from pipeline.make import dual_encoders


def identity(model: str, encoder: dual_encoders.DualEncoder) -> str:
    """Digest that on which an encoder's vectors depend: SHA-256 over its kind, its files and its
    usage.
    """
    kind, _, _ = model.partition(":")
    values = {
        "kind": kind,
        "files": dict(encoder.files),
        "usage": encoder.usage.recorded,
        "versions": versions(model),
    }
    return digest(values | _facts(encoder))


def versions(model: str) -> artefacts.Versions:
    """Collect the versions of an encoder's class and of decoding images."""
    return artefacts.versions((dual_encoders.DUAL_ENCODERS, model.partition(":")[0]), "images")


def described(
    model: str, encoder: dual_encoders.DualEncoder, trained_on: str | None
) -> dict[str, Any]:
    """Describe an encoder, by its card in manifests/weights.yaml where it has one, else by what the
    user says.
    """
    _, _, place = model.partition(":")
    card = _card(place, encoder.weights_file)
    title = None
    known = trained_on or encoder.trained_on
    if card:
        title = card.title
        known = known or card.trained_on
    values = {
        "place": model,
        "title": title,
        "trained_on": known,
        "usage": encoder.usage.recorded,
        "preprocessing": dict(encoder.preprocessing),
        "token_limit": encoder.token_limit,
        "activation": dict(encoder.activation),
    }
    if encoder.trained_on:
        values["tuned_on"] = encoder.trained_on
    return values | _facts(encoder)


def _card(hub: str, weights_file: str | None) -> weights.Checkpoint | None:
    """The card of a model by its name on the hub, or by the digest of its weights."""
    for card in weights.checkpoints().values():
        if card.hub == hub or (card.sha256 and card.sha256 == weights_file):
            return card
    return None


def _facts(encoder: dual_encoders.DualEncoder) -> dict[str, Any]:
    return {"facts": dict(encoder.facts)} if encoder.facts else {}


def made_from(
    name: str,
    model: str,
    encoder: dual_encoders.DualEncoder,
    trained_on: str | None,
    manifest: Manifest,
    splits: Mapping[str, Mapping[str, Any]],
) -> OfEncoder:
    """Compose the facts of an encoder's embeddings of splits."""
    same = identity(model, encoder)
    counts_of_splits = {split: dict(counts) for split, counts in splits.items()}
    member = Member(
        head=name,
        checkpoint=same,
        files=dict(encoder.files),
        weights=same,
        encoder=described(model, encoder, trained_on),
        splits=counts_of_splits,
    )
    return OfEncoder(
        dataset=manifest.dataset,
        split=SplitName.of(splits),
        manifest=manifest.digest,
        languages=manifest.languages,
        lacks=lacking(manifest.left_out),
        member=member,
    )


def load_recorded(member: Member, device: str = "cpu") -> dual_encoders.DualEncoder:
    """Load the encoder that a record names, whether or not its files are still the same."""
    known = member.encoder or {}
    usage = dual_encoders.Usage(**known["usage"], device=device)
    return dual_encoders.load(known["place"], usage)


def open_again(member: Member, device: str = "cpu") -> dual_encoders.DualEncoder:
    """Load the encoder that made a store's vectors."""
    encoder = load_recorded(member, device)
    model = (member.encoder or {})["place"]
    if identity(model, encoder) != member.checkpoint:
        raise InputError(
            f"{model}: its files are not those that {member.head} was embedded with; run `pipeline embed` "
            "again"
        )
    return encoder


def refuse_another(store: Path, model: str, encoder: dual_encoders.DualEncoder) -> None:
    """Refuse to replace vectors of another encoder, whose name is alike."""
    existing = artefacts.Artefact.existing(store)
    if existing is None or not existing.record.finished:
        return
    for member in layout.facts_of(existing.record).members:
        if not member.encoder or member.files == dict(encoder.files):
            continue
        place = str(member.encoder["place"])
        if place != model:
            raise InputError(
                f"{store}: holds the vectors of {place}; give those of {model} another name with --name, "
                "or delete that folder"
            )


def found_at(store: Path, place: str) -> None:
    """Record where an encoder is now, in a store of vectors or scores that it made, of which
    nothing else changes.
    """
    record = records.require(store)
    made = layout.facts_of(record)
    if not isinstance(made, OfEncoder):
        return
    member = made.member
    if member.encoder and member.encoder["place"] != place:
        member = member.changed(encoder={**member.encoder, "place": place})
        records.update(store, facts=made.changed(member=member).recorded())


class SplitVectors(NamedTuple):
    """One split's vectors, in the manifest's order."""

    split: Split  # the images and captions
    images: np.ndarray  # unit vectors, float32 [I, d]
    captions: np.ndarray  # unit vectors, float32 [C, d]
    made_from: Made  # the record of these


def of_split(embedded: System, manifest: Manifest, name: str) -> SplitVectors:
    """Take one split's vectors from a store of several."""
    made = embedded.made_from
    assert isinstance(made, OfOne)  # as all that have vectors
    is_encoder = isinstance(made, OfEncoder)
    if not is_encoder and made.training_data == made.dataset:
        raise InputError(
            f"{embedded.path}: holds the vectors of a head on its own data; name the head instead of the "
            "store: `pipeline score --system HEAD`"
        )
    if made.manifest != manifest.digest:
        raise InputError(
            f"{embedded.path}: was made with another manifest of {manifest.dataset} than the current one; "
            "run `pipeline embed` again"
        )
    splits = made.member.splits
    if name not in splits:
        raise InputError(
            f"{embedded.path}: holds {', '.join(splits)}, not {name}; embed it again without --split"
        )
    split = manifest.split(name)
    if is_encoder:
        of_split: dict[str, Any] = {"splits": {name: splits[name]}}
    else:
        of_split = {"splits": {}, **splits[name]}
        # Without images that failed in extraction.
        split = split.only(np.isin(split.image_ids, embedded.image_ids))
    made = made.changed(split=name, member=made.member.changed(**of_split))
    again = "; run `pipeline embed` again"
    images = embedded.vectors_of("image", split.image_ids, again)
    captions = embedded.vectors_of("caption", split.caption_ids, again)
    return SplitVectors(split, images, captions, made)

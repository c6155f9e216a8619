"""The steps of one head behind a result: its files, its description, and some of its vectors computed again."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import text as texts
from pipeline import training
from pipeline.evaluation.retrieval import Embeddings
from pipeline.evaluation.retrieval.collection import rows_of
from pipeline.files.digest import digest, sha256
from pipeline.manifest import Manifest, Split
from pipeline.parts.errors import InputError
from pipeline.provenance.step import Step, of_record
from pipeline.systems.scores.system import System, Vectors

APART = 1e-3
"""How far a unit vector may be from the one that is stored: another machine, or a GPU, multiplies otherwise."""
AT_ONCE = 64


def steps(folder: Path, member: Mapping[str, Any], made_from: Mapping[str, Any]) -> Iterator[Step]:
    """Compare a head's folder with the result's entry of the head."""
    file = folder / "best.safetensors"
    yield Step(file, "SHA-256", member["checkpoint"], _sha256(file))
    recorded: Mapping[str, str | None] = member.get("files") or {"head.json": None}
    for name in sorted(recorded, key=lambda name: (name == "head.json", name)):
        yield Step(folder / name, "SHA-256", recorded[name], _sha256(folder / name))
    yield from of_record(folder)
    try:
        said = training.read_description(folder)
    except InputError:  # the step above says that it is not there, or another one
        return
    here = made_from.get("trained_on", made_from["dataset"]) == made_from["dataset"]
    for what, known in (("manifest", made_from["manifest"]), ("store", member["store"])) if here else ():
        yield Step(folder / "head.json", f"the {what} it was trained on", known, said.get(what))
    settings = member.get("settings")
    found = (said.get("recipe_settings") or {}) | (said.get("training") or {})
    yield Step(folder / "head.json", "the settings it was trained with", digest(settings) if settings else None,
               digest(found))
    yield _named(folder, member, made_from, said)
    yield Step(folder / "text", "the words it was trained with", member.get("vocabulary"), _words(folder, said))


def _named(folder: Path, member: Mapping[str, Any], made_from: Mapping[str, Any], said: Mapping[str, Any]) -> Step:
    """By what tables name it. A head or a result of an earlier version may not say which networks are behind it."""
    keys = [key for key in ("recipe", "text", "seed") if made_from.get(key) is not None]
    features = said.get("features") or {}
    found = {key: said.get(key) for key in (*keys, "feature", "networks")} | {
        "features": features.get("recipe"), "published": "origin" in said}
    recorded = {key: made_from[key] for key in keys} | {
        key: member.get(key) for key in ("feature", "networks", "features", "published")}
    known = "networks" in member and "networks" in said
    return Step(folder / "head.json", "what it is called", digest(recorded) if known else None, digest(found))


def _sha256(file: Path) -> str | None:
    return sha256(file) if file.is_file() else None


def _words(folder: Path, said: Mapping[str, Any]) -> str | None:
    """The digest of the words computed again from their files; None where these cannot be read."""
    try:
        return texts.kind(str(said.get("text"))).load(folder / "text").digest
    except (InputError, KeyError, ValueError):
        return None


def embedded_again(folder: Path, store: Path, manifest: Manifest, features: Path, drawn: int, image: int | None,
                   batch_size: int, trained_on: tuple[Manifest, Path] | None = None) -> Step:
    """Embed some images again, with all their captions, and compare the vectors with the stored ones."""
    what = "embedded again"
    try:
        scores = System.open_either(store)
        source = training.source_of(training.read_description(folder), manifest, features)
        own = trained_on[0] if trained_on else manifest
        read = training.source_of(training.read_description(folder), *trained_on) if trained_on else source
        head = training.load_head(folder, own, read)
        whole = training.usable(source, manifest.split(scores.made_from["split"]))
        ids = np.intersect1d(whole.image_ids, scores.image_ids)
        chosen = np.random.default_rng().permutation(ids)[:drawn]
        part = whole.only(np.isin(whole.image_ids, [*chosen.tolist(), *([] if image is None else [image])]))
        told = f"{len(part.image_ids)} images, {len(part.captions)} captions"
        source.check(part.store_rows)
        if not isinstance(scores.kind, Vectors) and not training.embeds(head):
            cells = training.score_all(head, source, part, batch_size)
            return Step(store, "scored again", told, _other_scores(scores, part, cells) or told)
        vectors = training.embed(head.model, source, part, head.text, batch_size)
        return Step(store, what, told, another(scores, part, Embeddings(*vectors)) or told)
    except InputError as error:
        gone = not store.exists() or not folder.exists() or not features.exists()
        return Step(store, what, f"{drawn} images", None if gone else str(error))


def _other_scores(scores: System, part: Split, again: np.ndarray) -> str | None:
    """The first score that is another than the store holds, in words; None where there is none."""
    places = []
    for what, there, wanted in (("image", scores.image_ids, part.image_ids),
                                ("caption", scores.caption_ids, part.caption_ids)):
        places.append(rows_of(there, wanted))
        if len(missing := wanted[places[-1] < 0]):
            return f"{what} {missing[0]} is not scored"
    apart = np.abs(np.asarray(scores.similarity[:])[np.ix_(*places)] - again)
    image, caption = np.unravel_index(int(apart.argmax()), apart.shape)
    if apart[image, caption] <= APART * max(1.0, float(np.abs(again).max())):
        return None
    return (f"image {part.image_ids[image]} with caption {part.caption_ids[caption]} is "
            f"{apart[image, caption]:.3f} apart")


def another(scores: System, part: Split, again: Embeddings) -> str | None:
    """Find the first vector that is another than a store holds."""
    kept = scores.embeddings()
    for what, there, wanted, stored, made in (
            ("image", scores.image_ids, part.image_ids, kept.images, again.images),
            ("caption", scores.caption_ids, part.caption_ids, kept.captions, again.captions)):
        rows = rows_of(there, wanted)
        if len(missing := wanted[rows < 0]):
            return f"{what} {missing[0]} is not scored"
        if stored.shape[1] != made.shape[1]:
            return f"{what}s in {stored.shape[1]} dimensions, the head's have {made.shape[1]}"
        distance = np.linalg.norm(stored[rows] - made, axis=1)
        wrong = np.flatnonzero(~(distance <= APART))
        if len(wrong):
            return f"{what} {wanted[wrong[0]]} is {distance[wrong[0]]:.3f} apart"
    return None

"""The steps of one head or dual encoder behind a result: its files, and some of its vectors computed again."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from pipeline import training
from pipeline.artefacts.artefact import verify
from pipeline.artefacts.record import FILE
from pipeline.dual_encoders import embedding, record
from pipeline.evaluation.retrieval import Embeddings, rows_of
from pipeline.files.compared import Step
from pipeline.files.digest import digest, of_files, sha256
from pipeline.manifest import Manifest, Split
from pipeline.parts.errors import InputError
from pipeline.provenance.record import member_of
from pipeline.systems.scores.made import Made, Member
from pipeline.systems.scores.sources import Vectors
from pipeline.systems.scores.system import System
from pipeline.training.artefact import BEST, CONTENTS, HeadArtefact
from pipeline.training.request import TrainRequest

# How far a unit vector may be from the stored one: another machine, or a GPU, rounds differently.
APART = 1e-3
# Computes vectors or scores of a part of a split, for the system that they are compared with.
Embed = Callable[[Split, System], Embeddings | np.ndarray]


def steps(folder: Path, member: Member, made_from: Made) -> Iterator[Step]:
    """Compare a head's folder with its record, and the record with the result's entry of the head."""
    file = folder / BEST
    yield Step(file, "SHA-256", member.checkpoint, sha256(file) if file.is_file() else None)
    yield from verify(folder, *CONTENTS)
    try:
        head = HeadArtefact.open(folder)
    except InputError:  # a step above says that it is not there, or was edited
        return
    here = made_from.training_data == made_from.dataset
    for what, known, found in (("manifest", made_from.manifest, head.manifest),
                               ("store", member.store, head.facts.store)) if here else ():
        yield Step(folder / FILE, f"the {what} it was trained on", known, found)
    request = head.request
    names = {"recipe": request.name, "text": request.text, "seed": request.seed}
    named = {key: name for key, name in names.items() if getattr(made_from, key) is not None}
    now = member_of(head).changed(store=member.store, content=member.content, splits=member.splits)
    yield Step(folder / FILE, "what it is, and how it was trained",
               digest({key: getattr(made_from, key) for key in named} | member.model_dump(mode="json")),
               digest(named | now.model_dump(mode="json")))
    yield from trained_from(head)


def trained_from(head: HeadArtefact) -> Iterator[Step]:
    """Compare the heads beside it that it was trained from, and those behind them; it is used without them."""
    for role, reference in head.record.made_from.items():
        folder = head.folder.with_name(reference.name)
        if reference.kind != TrainRequest.kind or not (folder / FILE).exists():
            continue
        yield from verify(folder, *CONTENTS)
        try:
            other = HeadArtefact.open(folder)
        except InputError:  # a step above says why
            continue
        yield Step(folder / FILE, f"the {role} of {head.folder.name}", reference.identity, other.record.identity)
        yield from trained_from(other)


def steps_of_encoder(member: Member, made_from: Made, store: Path, manifest: Manifest,
                     drawn: int, image: int | None, batch_size: int) -> Iterator[Step]:
    """Compare a dual encoder and what it read with the result's entry of it."""
    said = member.encoder or {}
    model = Path(said["place"])
    try:
        encoder = record.load_recorded(member)
    except InputError:
        yield Step(model, "the encoder's files", member.checkpoint, None)
        return
    for name in dict.fromkeys((*member.files, *encoder.files)):
        yield Step(model / name, "SHA-256", member.files.get(name, "no such file"), encoder.files.get(name))
    yield Step(model, "the encoder and its usage", member.checkpoint, record.identity(said["place"], encoder))
    activation, recorded = (", ".join(f"{tower} {name}" for tower, name in sorted(each.items())) for each in (
        encoder.activation, said.get("activation", {})))
    yield Step(model, "activation of its towers", recorded or None, activation)
    yield Step(model, "what it is called", digest(dict(said)),
               digest(record.described(said["place"], encoder, said.get("trained_on"))))

    def photographs(part: Split) -> list[Path]:
        return [manifest.images_folder / name for name in manifest.images["file"].to_numpy()[part.store_rows]]

    def embed(part: Split, scores: System) -> Embeddings:
        piece = embedding.embed_part(encoder, photographs(part), part.captions.tolist(), batch_size)
        return Embeddings(piece.images, piece.captions)

    if drawn:
        yield _computed_again(store, (), lambda split: (manifest.split(split), embed), drawn, image)
    for split in member.splits:  # all photographs, because the digest is over all
        files = photographs(manifest.split(split))
        found = digest(list(of_files(files))) if all(file.is_file() for file in files) else None
        yield Step(manifest.images_folder, f"SHA-256 of the images of {split}", member.splits[split]["content"],
                   found)


def embedded_again(folder: Path, store: Path, manifest: Manifest, features: Path, drawn: int, image: int | None,
                   batch_size: int) -> Step:
    """Embed some images again by a head, with all their captions, and compare the vectors with the stored ones."""
    def opened(split: str) -> tuple[Split, Embed]:
        head = training.Head.open(folder)
        source = head.images(manifest, features)

        def embed(part: Split, scores: System) -> Embeddings | np.ndarray:
            source.check(part.store_rows)
            if isinstance(scores.kind, Vectors) or head.embeds:
                return Embeddings(*head.embed(source, part, batch_size))
            return head.score(source, part, batch_size)

        return training.usable(source, manifest.split(split)), embed

    return _computed_again(store, (folder, features), opened, drawn, image)


def _computed_again(store: Path, needed: tuple[Path, ...], opened: Callable[[str], tuple[Split, Embed]], drawn: int,
                    image: int | None) -> Step:
    """Compute vectors or scores of some images again, and of one that is named, and compare them with the stored ones.

    opened: gives, for a split's name, what of it can be embedded and the function that embeds a part of that.
    """
    what, told = "embedded again", f"{drawn} images"
    try:
        scores = System.open_either(store)
        whole, embed = opened(str(scores.split))
        chosen = np.random.default_rng().permutation(np.intersect1d(whole.image_ids, scores.image_ids))[:drawn].tolist()
        part = whole.only(np.isin(whole.image_ids, chosen if image is None else [*chosen, image]))
        again = embed(part, scores)
        told = f"{len(part.image_ids)} images, {len(part.captions)} captions"
        said = what if isinstance(again, Embeddings) else "scored again"
        return Step(store, said, told, _first_difference(scores, part, again) or told)
    except InputError as error:
        return Step(store, what, told, str(error) if all(path.exists() for path in (store, *needed)) else None)


def _first_difference(scores: System, part: Split, again: Embeddings | np.ndarray) -> str | None:
    """Describe the first vector or score that differs from the stored one; None if none does."""
    def rows(what: str, ids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        return rows_of(ids, wanted, lambda each: f"{what} {each} is not scored")

    images = rows("image", scores.image_ids, part.image_ids)
    captions = rows("caption", scores.caption_ids, part.caption_ids)
    if not isinstance(again, Embeddings):
        apart = np.abs(np.asarray(scores.similarity[:])[np.ix_(images, captions)] - again)
        image, caption = np.unravel_index(int(apart.argmax()), apart.shape)
        if apart[image, caption] <= APART * max(1.0, float(np.abs(again).max())):
            return None
        return (f"image {part.image_ids[image]} with caption {part.caption_ids[caption]} is "
                f"{apart[image, caption]:.3f} apart")
    kept = scores.embeddings()
    for what, ids, stored, made in (("image", part.image_ids, kept.images[images], again.images),
                                    ("caption", part.caption_ids, kept.captions[captions], again.captions)):
        if stored.shape[1] != made.shape[1]:
            return f"{what}s in {stored.shape[1]} dimensions, the head's have {made.shape[1]}"
        distance = np.linalg.norm(stored - made, axis=1)
        wrong = np.flatnonzero(~(distance <= APART))
        if len(wrong):
            return f"{what} {ids[wrong[0]]} is {distance[wrong[0]]:.3f} apart"
    return None

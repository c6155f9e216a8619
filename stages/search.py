"""Search a split, or any embedded folder, by a text or an image."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from pipeline.foundation.evaluation.retrieval.collection import Side
from pipeline.foundation.evaluation.retrieval.owners import NO_IMAGE, of_owners
from pipeline.foundation.evaluation.retrieval.top import INDEXES
from pipeline.foundation.files import atomic, gallery_file, images, regular
from pipeline.foundation.files.remembered import Remembered
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError, InputWarning, refusing
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths, system_name
from pipeline.judge.systems.scores.made import OfEncoder
from pipeline.judge.systems.scores.system import System
from pipeline.judge.tables import html
from pipeline.make import training
from pipeline.make.dual_encoders import record as records
from stages import scored_systems
from stages.arguments import Source
from stages.commands.search import SearchOptions
from stages.progress import say


def search(paths: Paths, settings: Settings, options: SearchOptions) -> None:
    """Find the images or captions nearest to a text or an image: a table, and a page of
    thumbnails.
    """
    texts = _texts(options.text, options.image, options.file)
    photograph = None
    image = None
    if options.image:
        photograph = _decoded(options.image)
        image = gallery_file.GalleryFile(str(options.image))
    INDEXES.module(options.index)
    find = options.find
    if find is None:
        find = "captions" if options.image else "images"
    # Searches often come in series, so digests of files that have not changed are remembered.
    remembered = Remembered(paths.digests)
    dataset = options.dataset or settings.run.dataset
    store = _store(paths, settings, options.source, dataset, remembered)
    store.made_from.refuse_vectors(store.name, "search by")
    name = str(store.made_from.recipe)
    if isinstance(store.made_from, OfEncoder):
        queries = _by_encoder(settings, store, texts, photograph)
    else:
        name = store.made_from.members[0].head
        learned_from = options.dataset or store.made_from.training_data
        queries = _by_head(paths, learned_from, name, store, texts, photograph)
    side: Side = "image" if find == "images" else "caption"
    vectors = store.vectors(side)
    index = INDEXES.find(options.index)(vectors)
    most = min(options.top, len(vectors))
    nearest = index.top(queries, most)
    shown = Manifest.load(paths.manifest(store.made_from.dataset))
    asked = [f"“{text}”" for text in texts] or [str(options.image)]
    if shown.digest != store.made_from.manifest:
        raise InputError(
            f"{store.path}: was made with another manifest of {shown.dataset} than the current one; run "
            "`pipeline score` or `pipeline embed` again"
        )
    of_queries = _hits(shown, store, find == "captions", *nearest)
    sections = []
    for query, hits in zip(asked, of_queries, strict=True):
        sections.append(html.Section(query, hits, image))
    path = options.out or paths.root / "results" / "search.html"
    searched = f"{store.made_from.dataset} ({store.split})"
    queries_named = f"{len(sections)} texts"
    if len(sections) == 1:
        queries_named = sections[0].query
    title = f"{find.capitalize()} of {searched} nearest to {queries_named}, by {name}"
    atomic.write_text(path, html.search(title, sections))
    found = "its first caption" if find == "images" else "the caption found"
    say(f"rank  score  image id  file  {found}", err=False)
    for section in sections:
        if len(sections) > 1:
            say(section.query, err=False)
        for hit in section.hits:
            text = hit.found
            if text is None:
                text = next(iter(hit.captions), "")
            file = "(no image)"
            if hit.file:
                file = hit.file.title
            ranked = f"{hit.rank:>4}  {hit.similarity:.3f}  {hit.image_id:>8}"
            say(f"{ranked}  {file}  {text}", err=False)
    say(f"{path}: thumbnails of these, from {searched}", err=False)


def _store(
    paths: Paths, settings: Settings, source: Source | None, dataset: str, remembered: Remembered
) -> System:
    if source and source.head:
        raise InputError(
            f"{source.named}: is a head; search reads embeddings, so run `pipeline embed "
            f"{dataset} --system {source.named}` and name what it writes"
        )
    if source and source.path:
        return System.open_vectors(source.path, remembered)
    if source:
        source.refuse_encoder(dataset)
    trained_on = Manifest.load(paths.manifest(dataset)).dataset
    if source:
        name = source.named
    else:
        run = settings.run
        name = system_name(run.recipes[0], run.features[0], run.texts[0], run.seeds[0])
    place = paths.similarity(trained_on, name, settings.score.split)
    head = paths.head(trained_on, name)
    if not place.exists() and not head.exists():
        place = paths.encoded(trained_on, name)
    if not place.exists():
        scored_systems.refuse_without_vectors(paths, settings, trained_on, name, "search by")
        training.HeadArtefact.open(head)  # refuses, if there is no such head either
    if head.is_dir():
        has_vectors = place.exists() and System.open(place).has_vectors()
        if not has_vectors:
            training.Head.open(head).require_embeddings()
    return System.open_vectors(place, remembered)


def _texts(text: str | None, image: Path | None, file: Path | None) -> list[str]:
    """The texts to search with, none for an image. Raises InputError unless there is one kind of
    query.
    """
    is_blank = text is not None and not text.strip()
    if is_blank or [text, image, file].count(None) != 2:
        raise InputError("give exactly one of a text, --image and --queries")
    if text is not None:
        return [text]
    if file is None:
        return []
    with (
        refusing(
            (OSError, ValueError),
            f"--queries {file}: expected a file of text in UTF-8, a query a line",
        ),
        refusing(FileNotFoundError, f"--queries {file}: no such file"),
    ):
        content = regular.content(file).decode("utf-8-sig")
        lines = [line.strip() for line in io.StringIO(content, newline=None)]
    if not any(lines):
        raise InputError(f"--queries {file}: holds no text; give a query a line")
    return [line for line in lines if line]


def _by_encoder(
    settings: Settings, store: System, texts: list[str], photograph: Image.Image | None
) -> np.ndarray:
    """Embed the queries with a dual encoder and its prompt: float32 [Q, d]."""
    device = settings.training_of(store.made_from.dataset).device
    encoder = records.open_again(store.made_from.members[0], device)
    if photograph is None:
        return encoder.embed_captions(texts)
    return encoder.embed_images([encoder.prepare(photograph)])


def _by_head(
    paths: Paths,
    dataset: str,
    name: str,
    store: System,
    texts: list[str],
    photograph: Image.Image | None,
) -> np.ndarray:
    """Embed the queries with the head that made the store: float32 [Q, d]. An image's features are
    made as its were.
    """
    folder = paths.head(dataset, name)
    if not folder.exists():
        raise InputError(
            f"{store.path}: its head embeds the texts, and is looked for at {folder}; put it there"
        )
    trained = training.Head.open(folder)
    trained.require_embeddings()
    if store.checkpoints != [trained.checkpoint]:
        raise InputError(
            f"{store.path}: is of another head than the current {name}; score or embed again"
        )
    if photograph is not None:
        return trained.embed_photographs([photograph], trained.new_images())
    for text in texts:
        unknown, words = trained.text.unknown(text)
        if len(unknown) == words:
            warning = f"“{text}”: holds no word that the head knows, so the results mean nothing"
            warnings.warn(warning, InputWarning, stacklevel=1)
        elif unknown:
            warning = f"“{text}”: the head does not know {', '.join(dict.fromkeys(unknown))}"
            warnings.warn(warning, InputWarning, stacklevel=1)
    return trained.embed_captions(texts, 32)  # in batches as a split's captions


def _decoded(path: Path) -> Image.Image:
    with refusing(images.ImageError, lambda error: f"{path}: {error}"):
        return images.decode(path)


def _hits(
    manifest: Manifest, store: System, captions: bool, candidates: np.ndarray, products: np.ndarray
) -> Iterator[list[html.Hit]]:
    """For each query, the found images, or the images of the found captions."""
    ids = manifest.images["image_id"].to_numpy()
    rows = candidates
    if captions:
        rows = store.caption_image[candidates]
    images = of_owners(store.image_ids, rows)
    texts = manifest.rows(
        ["image_id", "caption_id", "caption"], lambda rows: rows[rows["image_id"].isin(images.flat)]
    )

    def hit(rank: int, place: int, similarity: float, image_id: int) -> html.Hit:
        of_image = texts[texts["image_id"] == image_id]
        if image_id == NO_IMAGE:
            of_image = of_image[of_image["caption_id"] == store.caption_ids[place]]
        match = None
        if captions:
            is_match = of_image["caption_id"] == store.caption_ids[place]
            match = str(of_image.loc[is_match, "caption"].iloc[0])
        file = None
        if image_id != NO_IMAGE:
            (file,) = manifest.gallery(rows=[int(np.argmax(ids == image_id))])
        return html.Hit(rank, similarity, image_id, file, of_image["caption"].tolist(), match)

    of_queries = zip(candidates.tolist(), products.tolist(), images.tolist(), strict=True)
    for columns in of_queries:
        ranked = enumerate(zip(*columns, strict=True), start=1)
        yield [hit(rank, *values) for rank, values in ranked]

"""Write similarity matrices of heads and dual encoders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.features import FEATURES
from pipeline.paths import Paths, heads, system
from stages import options
from stages.progress import Progress

if TYPE_CHECKING:
    import numpy as np

    from pipeline import retrieval, training
    from pipeline.dual_encoders import stored
    from pipeline.files import asked
    from pipeline.manifest import Manifest
    from pipeline.provenance import record
    from pipeline.retrieval.stored import Matrix
    from pipeline.scores import similarity_store
    from pipeline.scores.embedding_store import EmbeddingStore
    from pipeline.settings import Settings


@click.command
@click.option("--feature", type=click.Choice(list(FEATURES)),
              help="Which visual feature; without it, --head and --embeddings all heads and encoders of the run.")
@options.dataset
@options.text
@options.recipes
@options.seeds
@click.option("--head", "folder", type=options.FilePath(),
              help="A head's folder, for one that was trained with --out. The matrix gets its name.")
@click.option("--embeddings", type=options.FilePath(), metavar="STORE",
              help="Embeddings by pipeline embed, of a dual encoder or of a head that was trained on other data. The "
              "matrix gets their name.")
@click.option("--images", "files", type=options.FilePath(), show_default="as in the manifest",
              help="Where the image files lie, for a fine-tuned head.")
@options.device
@options.with_settings
def command(paths: Paths, settings: Settings, feature: str | None, dataset: str | None, text: str,
            recipes: tuple[str, ...], seeds: tuple[int, ...], folder: Path | None, embeddings: Path | None,
            files: Path | None, device: str | None) -> None:
    """Write similarity matrices, embeddings and ids of heads and dual encoders for the split score.split.

    Example: pipeline score

    Example: pipeline score --feature region

    Example: pipeline score --feature region --recipe vse2ad --recipe vse2ad-noadopt --seed 0 --seed 1 --seed 2

    Example: pipeline score --embeddings embeddings/flickr8k/clip-vit-base-patch32.zarr
    """
    if embeddings:
        options.refuse("feature", "dataset", "text", "recipes", "seeds", "folder", "files", "device",
                       why="goes without --embeddings, which are multiplied as they are")
        _score_embeddings(paths, settings, embeddings)
        return
    dataset = dataset or settings.run.dataset
    if folder:
        options.refuse("feature", "text", "recipes", "seeds", why="goes without --head, which says what the head is")
        folders = [folder]
    elif feature:
        folders = [paths.head(dataset, system(recipe, feature, text, seed))
                   for recipe in recipes for seed in seeds]
    else:
        options.refuse("text", "recipes", "seeds", why="goes with --feature; all heads of the run are scored")
        folders = [paths.head(dataset, name) for name in heads(settings.run)]
    if not any("finetuned" in training.read_description(one) for one in folders):
        options.refuse("files", why="is for a fine-tuned head, which has its own network; other heads read stored "
                                    "features")
    requests = {one: _request(paths, settings, dataset, one) for one in folders}
    manifest = None
    for one, request in requests.items():
        path = paths.similarity(dataset, one.name)
        if request is not None and asked.is_done(path, request):
            click.echo(f"{path}: nothing to do")
            continue
        options.choose_products(settings)
        manifest = manifest or Manifest.load(paths.manifest(dataset))
        _score(paths, settings, manifest, one, files, device or settings.training_of(dataset).device)
        if request is not None:
            asked.write(path, request, asked.files(path))
    for encoder in settings.run.encoders if not (folder or feature) else []:
        _score_embeddings(paths, settings, paths.encoded(dataset, encoder.name))


def _request(paths: Paths, settings: Settings, dataset: str, folder: Path) -> dict[str, Any] | None:
    """What the scores of a head depend on."""
    described, score = training.read_description(folder), settings.score
    store = paths.features(dataset, described["feature"])
    return training.scores(folder, paths.manifest(dataset), store, score.split, score.batch_size)


def _score(paths: Paths, settings: Settings, manifest: Manifest, folder: Path, files: Path | None,
           device: str) -> None:
    described = training.read_description(folder)
    source = training.source_of(described, manifest, paths.features(manifest.dataset, described["feature"]), files)
    head = training.load_head(folder, manifest, source, device)
    split = training.usable(source, manifest.split(settings.score.split))
    source.check(split.store_rows)
    made_from = record.made_from(folder, head, manifest, split.name, source, split.store_rows)
    path = paths.similarity(manifest.dataset, folder.name)
    _warn_of_another_split(path, split.name)
    ids = (split.image_ids, split.caption_ids, split.caption_image.astype(np.int64))
    with Progress(folder.name, "image", len(split.image_ids)) as bar:
        if training.embeds(head):
            vectors = training.embed(head.model, source, split, head.text, settings.score.batch_size)
            # Summed in float64 and rounded once, so that equal vectors have equal similarities wherever they stand.
            similarity_store.save(path, [retrieval.Embeddings(*vectors, double=True)], *ids, made_from,
                                  progress=bar.reach, image_embeddings=vectors[0], caption_embeddings=vectors[1])
        else:
            scores = training.score_all(head, source, split, settings.score.batch_size, bar.reach)
            similarity_store.save(path, [Matrix(scores)], *ids, made_from)
    click.echo(f"{path}: {len(ids[0])} images x {len(ids[1])} captions of {split.name}")


def _score_embeddings(paths: Paths, settings: Settings, path: Path) -> None:
    """Multiply stored vectors of score.split, unless that is done."""
    embedded = EmbeddingStore.open(path)
    dataset, split = embedded.made_from["dataset"], settings.score.split
    target, request = paths.similarity(dataset, path.stem), {"made_from": embedded.made_from, "split": split}
    if asked.is_done(target, request):
        click.echo(f"{target}: nothing to do")
        return
    options.choose_products(settings)
    _warn_of_another_split(target, split)
    found = stored.of_split(embedded, Manifest.load(paths.manifest(dataset)), split)
    with Progress(path.stem, "image", len(found.images)) as bar:
        similarity_store.save(target, [retrieval.Embeddings(found.images, found.captions, double=True)],
                              found.split.image_ids, found.split.caption_ids,
                              found.split.caption_image.astype(np.int64), found.made_from, progress=bar.reach,
                              image_embeddings=found.images, caption_embeddings=found.captions)
    asked.write(target, request, asked.files(target))
    click.echo(f"{target}: {len(found.images)} images x {len(found.captions)} captions of {split}")


def _warn_of_another_split(path: Path, split: str) -> None:
    """Say that scores of another split are replaced: a head has one store."""
    import zarr

    try:
        before = zarr.open_group(path, mode="r", zarr_format=3).attrs["made_from"]["split"]  # type: ignore[index,call-overload]
    except (FileNotFoundError, KeyError, ValueError, TypeError):
        return
    if before != split:
        click.echo(f"{path}: the scores of {before} are replaced by those of {split}; `pipeline score -S "
                   f"score.split={before}` makes them again", err=True)

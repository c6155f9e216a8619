"""Write similarity matrices of heads and dual encoders."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.settings.features import FEATURES
from pipeline.settings.paths import Paths, heads, system
from stages import options, workplace
from stages.progress import Progress

if TYPE_CHECKING:
    import numpy as np

    from pipeline import training
    from pipeline.compute.tasks import Executor
    from pipeline.dual_encoders import record as records
    from pipeline.evaluation import retrieval
    from pipeline.evaluation.retrieval.stored import Matrix
    from pipeline.files.atomic import exclusive
    from pipeline.files.record import finish, is_done
    from pipeline.manifest import Manifest
    from pipeline.provenance import record
    from pipeline.settings import Settings
    from pipeline.systems.scores import layout
    from pipeline.systems.scores.system import System


@click.command
@click.option("--feature", type=click.Choice(list(FEATURES)),
              help="Which visual feature; without it and --system all heads and encoders of the run.")
@options.dataset
@options.text
@options.recipes
@options.seeds
@options.system("A head by its name, or its folder if it was trained with --out; or a store of embeddings by `pipeline "
                "embed`, of a dual encoder or of a head that was trained on other data. The matrix gets its name.")
@click.option("--images", "files", type=options.FilePath(), show_default="as in the manifest",
              help="Where the image files lie, for a fine-tuned head.")
@options.device
@workplace.on_workers
@options.with_settings
def command(paths: Paths, settings: Settings, feature: str | None, dataset: str | None, text: str,
            recipes: tuple[str, ...], seeds: tuple[int, ...], source: options.Source | None,
            files: Path | None, device: str | None, workers: int, scheduler: str | None) -> None:
    """Write similarity matrices, embeddings and ids of heads and dual encoders for the split score.split.

    Those of test lie in similarities/DATASET, those of val in similarities/DATASET/val. A head's run that was
    interrupted goes on.

    Example: pipeline score

    Example: pipeline score --feature region

    Example: pipeline score --feature region --recipe vse2ad --recipe vse2ad-noadopt --seed 0 --seed 1 --seed 2

    Example: pipeline score --system embeddings/flickr8k/clip-vit-base-patch32.zarr
    """
    workplace.check(scheduler)
    if source and source.path and (source.path.suffix == ".zarr" or (source.path / "zarr.json").exists()):
        options.refuse("feature", "dataset", "text", "recipes", "seeds", "files", "device", "workers", "scheduler",
                       why="goes without embeddings, which are multiplied as they are")
        _score_embeddings(paths, settings, source.path)
        return
    dataset = dataset or settings.run.dataset
    if source:
        options.refuse("feature", "text", "recipes", "seeds", why="goes without --system, which names the head")
        folders = [source.path or paths.head(dataset, source.named)]
    elif feature:
        folders = [paths.head(dataset, system(recipe, feature, text, seed))
                   for recipe in recipes for seed in seeds]
    else:
        options.refuse("text", "recipes", "seeds", why="goes with --feature; all heads of the run are scored")
        folders = [paths.head(dataset, name) for name in heads(settings.run)]
    if not any("finetuned" in training.read_description(one) for one in folders):
        options.refuse("files", why="is for a fine-tuned head, which has its own network; other heads read stored "
                                    "features")
    missing = _missing(paths, settings, dataset, folders)
    with workplace.executor(workers, scheduler) if missing else nullcontext() as place:
        for one, request in missing.items():
            path = paths.similarity(dataset, one.name, settings.score.split)
            on = device or settings.training_of(dataset).device
            use = training.HeadUse(paths, one, dataset, dataset, files, on, settings.compute.products)
            _score(path, use, settings, place)
            if request is not None:
                finish(path, request)
    for encoder in settings.run.encoders if not (source or feature) else []:
        _score_embeddings(paths, settings, paths.encoded(dataset, encoder.name))


def _missing(paths: Paths, settings: Settings, dataset: str, folders: list[Path]) -> dict[Path, dict[str, Any] | None]:
    """The heads whose scores are not there, each with what they depend on."""
    found = {}
    for folder in folders:
        described, score = training.read_description(folder), settings.score
        store = paths.features(dataset, described["feature"])
        path = paths.similarity(dataset, folder.name, score.split)
        request = training.scores(folder, paths.manifest(dataset), store, score.split, score.batch_size)
        if request is not None and is_done(path, request):
            click.echo(f"{path}: nothing to do")
        else:
            found[folder] = request
    return found


def _score(path: Path, use: training.HeadUse, settings: Settings, place: Executor | None) -> None:
    pieces = training.pieces
    # With workers, the network computes there.
    opened = training.OpenHead.open(use if place is None else replace(use, device="cpu"))
    split, batch_size = opened.split(settings.score.split), settings.score.batch_size
    opened.source.check(split.store_rows)
    made_from = record.made_from(use.folder, opened.head, opened.manifest, split.name, opened.source, split.store_rows)
    ids = (split.image_ids, split.caption_ids, split.caption_image.astype(np.int64))
    noun = opened.manifest.noun
    with exclusive(path), Progress(path.stem, noun, len(split.image_ids)) as bar:
        kept = pieces.kept(path, opened, use.device, batch_size, made_from)
        if training.embeds(opened.head):
            found = pieces.run(opened, pieces.apart(opened, split, batch_size), kept, batch_size, use.device, place,
                               bar.piece)
            vectors = pieces.vectors(found, split)
            # Summed in float64 and rounded once, so that equal vectors have equal similarities wherever they stand.
            layout.save(path, [retrieval.Embeddings(*vectors, double=True)], *ids, made_from,
                                  image_embeddings=vectors[0], caption_embeddings=vectors[1])
        else:
            found = pieces.run(opened, pieces.against_all(opened, split, batch_size), kept, batch_size, use.device,
                               place, bar.piece)
            layout.save(path, [Matrix(pieces.matrix(found, split))], *ids, made_from)
        kept.remove()
    click.echo(f"{path}: {len(ids[0])} {noun}s x {len(ids[1])} captions of {split.name}")


def _score_embeddings(paths: Paths, settings: Settings, path: Path) -> None:
    """Multiply stored vectors of score.split, unless that is done."""
    embedded = System.open_vectors(path)
    dataset, split = embedded.made_from["dataset"], settings.score.split
    target, request = paths.similarity(dataset, path.stem, split), {"made_from": embedded.made_from, "split": split}
    if is_done(target, request):
        click.echo(f"{target}: nothing to do")
        return
    options.choose_products(settings)
    found = records.of_split(embedded, Manifest.load(paths.manifest(dataset)), split)
    with Progress(path.stem, "image", len(found.images)) as bar:
        layout.save(target, [retrieval.Embeddings(found.images, found.captions, double=True)],
                              found.split.image_ids, found.split.caption_ids,
                              found.split.caption_image.astype(np.int64), found.made_from, progress=bar.reach,
                              image_embeddings=found.images, caption_embeddings=found.captions)
    finish(target, request)
    click.echo(f"{target}: {len(found.images)} images x {len(found.captions)} captions of {split}")

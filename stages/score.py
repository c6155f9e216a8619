"""Write similarity matrices of heads and dual encoders."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.settings.features import FEATURES
from pipeline.settings.paths import Paths, heads, system
from stages import options
from stages.progress import Progress, unless_done

if TYPE_CHECKING:
    import numpy as np

    from pipeline import training
    from pipeline.compute.tasks import Executor
    from pipeline.dual_encoders import record as records
    from pipeline.evaluation import retrieval
    from pipeline.evaluation.retrieval.stored import Matrix
    from pipeline.files.atomic import exclusive
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
@options.image_files(", for a fine-tuned head", "files")
@options.device
@options.on_workers
@options.with_settings
def command(paths: Paths, settings: Settings, feature: str | None, dataset: str | None, text: str,
            recipes: tuple[str, ...], seeds: tuple[int, ...], source: options.Source | None,
            files: Path | None, device: str | None,
            open_workers: Callable[[], AbstractContextManager[Executor | None]]) -> None:
    """Write similarity matrices, embeddings and ids of heads and dual encoders for the split score.split.

    Those of test lie in similarities/DATASET, those of val in similarities/DATASET/val. A head's run that was
    interrupted goes on.

    Example: pipeline score

    Example: pipeline score --feature region

    Example: pipeline score --feature region --recipe vse2ad --recipe vse2ad-noadopt --seed 0 --seed 1 --seed 2

    Example: pipeline score --system embeddings/flickr8k/clip-vit-base-patch32.zarr
    """
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
    described = {folder: training.read_description(folder) for folder in folders}
    if not any("finetuned" in head for head in described.values()):
        options.refuse("files", why="is for a fine-tuned head, which has its own network; other heads read stored "
                                    "features")
    split, batch_size = settings.score.split, settings.score.batch_size
    with ExitStack() as stack:
        place = cache(lambda: stack.enter_context(open_workers()))
        for folder, head in described.items():
            request = training.scores(folder, paths.manifest(dataset), paths.features(dataset, head["feature"]), split,
                                      batch_size)
            path = paths.similarity(dataset, folder.name, split)
            used = (paths, folder, dataset, dataset, files, device or settings.training_of(dataset).device,
                    settings.compute.products)
            unless_done(path, request, partial(_score, path, settings, place, used))
    for encoder in settings.run.encoders if not (source or feature) else []:
        _score_embeddings(paths, settings, paths.encoded(dataset, encoder.name))


def _score(path: Path, settings: Settings, opened_place: Callable[[], Executor | None], used: tuple[Any, ...]
           ) -> str:
    """Write a head's scores, and say how many. used: for `HeadUse`, which brings torch."""
    use, pieces, place = training.HeadUse(*used), training.pieces, opened_place()
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
    return f"{len(ids[0])} {noun}s x {len(ids[1])} captions of {split.name}"


def _score_embeddings(paths: Paths, settings: Settings, path: Path) -> None:
    """Multiply stored vectors of score.split, unless that is done."""
    embedded = System.open_vectors(path)
    dataset, split = embedded.made_from["dataset"], settings.score.split
    target = paths.similarity(dataset, path.stem, split)

    def multiply() -> str:
        options.choose_products(settings)
        found = records.of_split(embedded, Manifest.load(paths.manifest(dataset)), split)
        ids = found.split.image_ids, found.split.caption_ids, found.split.caption_image.astype(np.int64)
        with Progress(path.stem, "image", len(found.images)) as bar:
            layout.save(target, [retrieval.Embeddings(found.images, found.captions, double=True)], *ids,
                        found.made_from, progress=bar.reach, image_embeddings=found.images,
                        caption_embeddings=found.captions)
        return f"{len(found.images)} images x {len(found.captions)} captions of {split}"

    unless_done(target, {"made_from": embedded.made_from, "split": split}, multiply)

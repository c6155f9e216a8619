"""Embed a data set's images and captions with a head that was trained on it or on another, or with a dual encoder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline import manifest as manifests
from pipeline.parts.errors import InputError, counted
from pipeline.settings.paths import Paths
from stages import options
from stages.progress import Progress, unless_done

if TYPE_CHECKING:
    import numpy as np

    from pipeline import dual_encoders, training
    from pipeline.compute.tasks import Executor
    from pipeline.dual_encoders import embedding
    from pipeline.dual_encoders import record as records
    from pipeline.dual_encoders.base import DualEncoder, Usage
    from pipeline.features.store import FeatureStore
    from pipeline.files.atomic import exclusive
    from pipeline.manifest import Manifest, Split
    from pipeline.provenance import record
    from pipeline.settings import Settings
    from pipeline.settings.run import Encoder
    from pipeline.systems import rescoring
    from pipeline.systems.scores import layout
    from pipeline.systems.scores.system import System
    from pipeline.training import pieces
    from pipeline.training.head import HeadUse, OpenHead


@click.command
@click.argument("name", required=False, shell_complete=options.names("dataset"))
@options.system(options.HEAD_OR_ENCODER)
@options.trained_on
@click.option("--name", "called", metavar="NAME", callback=options.called, show_default="the last part of PLACE",
              help="What the encoder is called in results.")
@click.option("--prompt", default="{}", show_default=True, help="What it reads, {} being the caption: 'a photo of {}'.")
@click.option("--preprocessing", type=click.Choice(["own", "squash"]), default="own", show_default=True,
              help="The model's own, such as a crop of the centre; or images squashed to its size, without a crop.")
@click.option("--precision", type=click.Choice(["fp32", "bf16", "fp16"]), default="fp32", show_default=True,
              help="The precision in which the encoder computes.")
@click.option("--batch-size", type=click.IntRange(min=1), default=64, show_default=True,
              help="Images or captions that the encoder sees at once.")
@click.option("--split", "splits", type=click.Choice(manifests.SPLITS), multiple=True,
              show_default="all that there are", help="Which images; may be given several times.")
@options.out("embeddings/NAME/…", "The store: DATASET-SYSTEM.zarr of a head, NAME.zarr of an encoder.")
@options.image_files(", for an encoder or a fine-tuned head", "files")
@options.device
@options.on_workers
@options.with_settings_or_shipped
def command(paths: Paths, settings: Settings, name: str | None, source: options.Source | None, trained_on: str | None,
            called: str | None, prompt: str, preprocessing: str, precision: str, batch_size: int,
            splits: tuple[str, ...], out: Path | None, files: Path | None, device: str | None,
            open_workers: Callable[[], AbstractContextManager[Executor | None]]) -> None:
    """Embed the images and captions of data set NAME: for `pipeline search`, or as distractors of `pipeline evaluate`.

    A head: its features must be there, made by the same engine with the same settings as those that the head was
    trained on. A fine-tuned head has its own network and reads the image files.
    Photographs without captions still need a captions.csv: the files' names may stand in it as captions.

    An encoder as it comes, such as CLIP, reads the image files. Then `pipeline score --system STORE` makes a system of
    it. Without NAME: all of run.encoders, and the heads whose vectors of the split train run.rescorers read as their
    bank. A run that was interrupted goes on.

    Example: pipeline embed flickr8k --system vse2ad-region-bigru-s0 --trained-on coco

    Example: pipeline embed flickr8k --system clip:openai/clip-vit-base-patch32
    """
    if name is None:
        options.refuse("source", "called", "prompt", "preprocessing", "precision", "trained_on",
                       "splits", "out", why="goes with the NAME of a data set")
        run = settings.run
        paths.encoded(run.dataset, "").parent.mkdir(parents=True, exist_ok=True)  # dvc.yaml names it, empty or not
        heads = rescoring.embedded_heads(run)
        if not run.encoders and not heads:
            click.echo("no encoder and no bank of train in the run: nothing to do")
            return
        with open_workers() as place:
            for each in run.encoders:
                _by_encoder(paths, settings, run.dataset, each, (), None, files, batch_size, device, place)
            for each_head in heads:
                _by_head(paths, settings, run.dataset, each_head, run.dataset, (), None, None, device, place)
        return
    if source is None:
        raise InputError("give --system: a head's name, or KIND:PLACE of an encoder")
    if source.is_encoder:
        encoder = Encoder.model_validate({
            "name": called or _name_of(source.named), "model": source.named, "prompt": prompt,
            "preprocessing": preprocessing, "precision": precision, "trained_on": trained_on})
        with open_workers() as place:
            _by_encoder(paths, settings, name, encoder, splits, out, files, batch_size, device, place)
        return
    options.refuse("called", "prompt", "preprocessing", "precision", "batch_size",
                   why="goes with an encoder, KIND:PLACE")
    dataset = trained_on or settings.run.dataset
    with open_workers() as place:
        _by_head(paths, settings, name, source.named, dataset, splits, out, files, device, place)


def _by_head(paths: Paths, settings: Settings, name: str, head: str, dataset: str, splits: tuple[str, ...],
             out: Path | None, files: Path | None, device: str | None, place: Executor | None) -> None:
    folder, path = paths.head(dataset, head), out or paths.embeddings(name, dataset, head)
    store = paths.features(name, training.read_description(folder)["feature"])
    request = training.scores(folder, paths.manifest(name), store, "+".join(splits), settings.score.batch_size)

    def embed() -> str:
        use = HeadUse(paths, folder, dataset, name, files, device or settings.training_of(dataset).device,
                      settings.compute.products)
        # With workers, the network computes there.
        opened = OpenHead.open(use if place is None else replace(use, device="cpu"))
        training.require_embeddings(opened.head, head)
        if files is not None and isinstance(opened.source, FeatureStore):
            options.refuse("files", why="is for a fine-tuned head; this one reads stored features")
        manifest = opened.manifest
        parts = [opened.split(part.name) for part in _splits(manifest, splits)]
        rows = np.concatenate([part.store_rows for part in parts])
        opened.source.check(rows)
        split = "+".join(part.name for part in parts)
        made_from = record.made_from(folder, opened.head, manifest, split, opened.source, rows) | {
            "trained_on": dataset}
        _embed(path, opened, parts, settings.score.batch_size, made_from, use.device, place)
        return _told(parts, name)

    unless_done(path, request, embed)


def _splits(manifest: Manifest, names: tuple[str, ...]) -> list[Split]:
    return [manifest.split(name)
            for name in names or [each for each in manifests.SPLITS if (manifest.images["split"] == each).any()]]


def _told(parts: list[Split], name: str) -> str:
    images, captions = (sum(len(ids) for ids in every) for every in zip(
        *((part.image_ids, part.caption_ids) for part in parts), strict=True))
    return f"{counted(images, 'image')} and {counted(captions, 'caption')} of {name}"


def _embed(path: Path, opened: OpenHead, parts: list[Split], batch_size: int, made_from: Mapping[str, Any],
           device: str, place: Executor | None) -> None:
    firsts = np.cumsum([[0, 0], *([len(part.image_ids), len(part.caption_ids)] for part in parts)], axis=0)
    first = {part.name: dict(zip(("images", "captions"), row, strict=True))
             for part, row in zip(parts, firsts, strict=False)}
    layout.refuse_no_vectors(path)
    every = [piece for part in parts for piece in pieces.with_captions(part)]
    with exclusive(path), Progress(path.stem, "image", int(firsts[-1][0])) as bar:
        kept = pieces.kept(path, opened, device, batch_size, made_from)
        found = pieces.run(opened, every, kept, batch_size, device, place, bar.piece)
        with layout.writing_vectors(path, parts, opened.head.model.dimension, made_from) as vectors:
            whole = dict(zip(("images", "captions"), vectors, strict=True))
            for piece, arrays in found:
                for side, values in arrays.items():
                    whole[side][first[piece.split][side] + getattr(piece, side)] = values
        kept.remove()


def _by_encoder(paths: Paths, settings: Settings, name: str, encoder: Encoder, splits: tuple[str, ...],
                out: Path | None, files: Path | None, batch_size: int, device: str | None, place: Executor | None
                ) -> None:
    options.choose_products(settings)
    manifest = Manifest.load(paths.manifest(name))
    manifest.require_photographs("a dual encoder")
    parts, path = _splits(manifest, splits), out or paths.encoded(name, encoder.name)
    usage = Usage(encoder.prompt, encoder.preprocessing, encoder.precision,
                  device or settings.training_of(name).device)
    # With workers, the network computes there.
    opened = dual_encoders.load(encoder.model, usage if place is None else replace(usage, device="cpu"))
    same = records.identity(encoder.model, opened)
    request = {"encoder": same, "named": encoder.model_dump(), "manifest": manifest.digest,
               "splits": [part.name for part in parts]}
    job = embedding.Job(encoder.model, usage, manifest, files or manifest.images_folder, parts, batch_size,
                        settings.compute.products)

    def embed() -> str:
        with Progress(path.stem, "image", sum(len(part.image_ids) for part in parts)) as bar:
            embedding.embed(path, opened, job, lambda found: records.made_from(
                encoder.name, encoder.model, opened, encoder.trained_on, manifest, found), place, bar.piece)
        return "\n".join([_told(parts, name), *_cut(path, opened)])

    unless_done(path, request, embed)


def _cut(path: Path, opened: DualEncoder) -> Iterator[str]:
    """Of which splits the encoder did not read all captions whole."""
    member, = System.open_vectors(path).made_from["members"]
    for split, found in member["splits"].items():
        if found["cut_captions"]:
            yield (f"{found['cut_captions']:,} of {found['captions']:,} captions of {split} are longer than "
                   f"{opened.token_limit} tokens; the encoder read their beginning")


def _name_of(model: str) -> str:
    """A system's name from a model's: its folder, or the last part of its name on the hub."""
    last = re.sub(r"[^A-Za-z0-9]+", "-", Path(model.partition(":")[2]).name).strip("-")
    if not last:
        raise InputError(f"model {model!r}: has no name; give one with --name")
    return last

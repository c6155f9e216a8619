"""Measure R@K and RSUM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource
from tqdm import tqdm

from pipeline import manifest, retrieval
from pipeline.errors import InputError
from pipeline.manifest import Manifest
from pipeline.settings import Settings
from pipeline.similarity_store import SimilarityStore
from stages.layout import ENSEMBLES, Layout, system
from stages.options import with_settings

DIRECTIONS = {"i2t": "image → caption", "t2i": "caption → image"}


@click.command
@click.option("--similarity", type=click.Path(path_type=Path),
              help="Measure this images x captions matrix (.npy or zarr) alone and print it.")
@click.option("--manifest", "manifest_path", type=click.Path(path_type=Path),
              help="Whose captions its columns are.")
@click.option("--split", default="test", show_default=True, help="Which of the manifest's splits it is of.")
@click.option("--captions-per-image", type=click.IntRange(min=1), default=5, show_default=True,
              help="Without a manifest: captions stand together, so many an image.")
@click.option("--folds", type=click.IntRange(min=1), default=1, show_default=True,
              help="Mean over so many consecutive folds of images.")
@click.option("--protocol", type=click.Choice(list(retrieval.PROTOCOLS)), help="A benchmark's rules, asserted.")
@click.option("--ties", type=click.Choice(["expected", "pessimistic", "optimistic"]), default="expected",
              show_default=True, help="How ties count: their exact expectation, or its bounds.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_settings
def command(layout: Layout, settings: Settings, similarity: Path | None, as_json: bool, ties: Any,
            **options: Any) -> None:
    """Measure R@K and RSUM of the run's heads and ensembles into results/metrics.json, or of any matrix.

    Example: pipeline evaluate --similarity sims.npy --captions-per-image 5 --folds 5 --json
    """
    if similarity is not None:
        metrics = _measure_matrix(similarity, ties, **options).as_dict()
        click.echo(json.dumps(metrics, indent=1) if as_json else describe(metrics))
        return
    _refuse_what_a_run_does_not_use()
    results = _measure_run(layout, settings, ties)
    layout.metrics.parent.mkdir(parents=True, exist_ok=True)
    partial = layout.metrics.with_suffix(".partial")
    partial.write_text(json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8")
    partial.replace(layout.metrics)
    if as_json:
        click.echo(layout.metrics.read_text(encoding="utf-8"))
    else:
        for name, result in results.items():
            for protocol in sorted(result.keys() - {"made_from"}):
                click.echo(f"{name}, {describe(result[protocol])}")


def _refuse_what_a_run_does_not_use() -> None:
    """The run's protocols are its data set's: options of a single matrix would do nothing."""
    context = click.get_current_context()
    for name in ("manifest_path", "split", "captions_per_image", "folds", "protocol"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(f"--{name.removesuffix('_path').replace('_', '-')} goes with --similarity; the run is "
                             "measured by the protocols of its data set's card")


def _measure_run(layout: Layout, settings: Settings, ties: Any) -> dict[str, Any]:
    """Every head and ensemble of the run's axes, each by its data set's protocols, with what made it."""
    run = settings.run
    names = [system(recipe, visual, text, seed) for recipe in run.recipes for text in run.texts for seed in run.seeds
             for visual in [*run.features, *(name for name, features in ENSEMBLES.items()
                                             if set(features) <= set(run.features))]]
    results: dict[str, Any] = {}
    for name in tqdm(names, unit="system", desc="evaluate"):
        store = SimilarityStore.open(layout.similarity(run.dataset, name))
        protocols = manifest.dataset(run.dataset).protocols if store.made_from["split"] == "test" else ["all"]
        results[name] = {"made_from": store.made_from} | {
            protocol: retrieval.evaluate(store.similarity, store.caption_image, protocol, ties).as_dict()
            for protocol in protocols}
    return results


def _measure_matrix(path: Path, ties: Any, manifest_path: Path | None, split: str, captions_per_image: int,
                    folds: int, protocol: str | None) -> retrieval.Metrics:
    if path.is_dir() and (path / "similarity").is_dir():
        store = SimilarityStore.open(path)
        source, caption_image = retrieval.as_similarity(store.similarity), store.caption_image
    else:
        source = retrieval.as_similarity(path)
        caption_image = retrieval.consecutive_captions(source.shape, captions_per_image) if manifest_path is None \
            else _caption_image(manifest_path, split, source.shape)
    if protocol and folds > 1:
        raise InputError("--protocol has its own folds; give --protocol or --folds")
    rules = retrieval.Protocol("all" if folds == 1 else f"{folds}fold", folds=folds)
    with tqdm(total=source.shape[0], unit="image", desc="rank", leave=False) as bar:
        return retrieval.evaluate(source, caption_image, protocol or rules, ties,
                                  progress=lambda done: bar.update(done - bar.n))


def _caption_image(manifest_path: Path, split: str, shape: tuple[int, int]) -> np.ndarray:
    chosen = Manifest.load(manifest_path).split(split)
    expected = (len(chosen.image_ids), len(chosen.caption_ids))
    if shape != expected:
        raise InputError(f"the matrix is {shape[0]} x {shape[1]}, the manifest's {split} split {expected[0]} images x "
                         f"{expected[1]} captions; rows are images, columns captions")
    return chosen.caption_image


def describe(metrics: dict[str, Any]) -> str:
    """Metrics as text, one direction a line."""
    lines = [f"{metrics['images']} images x {metrics['captions']} captions, protocol {metrics['protocol']}"]
    for key, title in DIRECTIONS.items():
        way = metrics[key]
        lines.append(f"  {title:<16} R@1 {way['r1']:5.1f}  R@5 {way['r5']:5.1f}  R@10 {way['r10']:5.1f}  "
                     f"median rank {way['median_rank']:.1f}  tied queries {metrics['tied'][key]}")
    return "\n".join([*lines, f"  RSUM {metrics['rsum']:.1f}"])

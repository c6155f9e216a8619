"""Fuse the similarities of several systems into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.foundation.artefacts import Draft
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.features import FEATURES, of_ensemble as features_of
from pipeline.foundation.settings.paths import Paths, ensembles, system_name
from pipeline.judge.systems.fusion.methods import shares as shares_of
from pipeline.judge.systems.requests import FuseRequest
from pipeline.judge.systems.scores import fuse, judged, of_ensemble
from pipeline.judge.systems.scores.foreign.opening import open_recorded
from pipeline.judge.systems.scores.made import Ensemble
from pipeline.judge.systems.scores.system import System
from stages import named_systems
from stages.arguments import is_name, refuse_repeats
from stages.commands.ensemble import EnsembleOptions
from stages.progress import Progress, say, unless_up_to_date

LETTERS = [feature.letter for feature in FEATURES.values()]


def ensemble(paths: Paths, settings: Settings, options: EnsembleOptions) -> None:
    """Fuse systems, aligned by image and caption id. Running again does nothing where the members
    are the same.
    """
    dataset = options.dataset or settings.run.dataset
    place = partial(paths.similarity, dataset, split=settings.score.split)
    name = options.name
    if name is None:
        for recipe, letters, text, seed in ensembles(settings.run).values():
            _mean(place, letters, recipe, text, seed, options.keep_common)
        return
    features = features_of(name)
    if features:
        if options.members or options.weights or options.on or options.fusion != "mean":
            raise InputError(
                f"{name} is the papers' mean over {', '.join(features)}; give an ensemble with members, "
                "weights or a fusion of its own another name, and its members with --member"
            )
        _mean(place, name, options.recipe, options.text, options.seed, options.keep_common)
        return
    if not is_name(name):
        raise InputError(f"{name!r}: an ensemble's name consists of letters, digits and _ . + -")
    if len(options.members) < 2:
        raise InputError(
            f"an ensemble of your own, such as {name}, needs two or more --member; the name of one of "
            f"features consists of their letters, in the order {''.join(LETTERS)}: RG"
        )
    places = [named_systems.place(paths, settings, member, dataset) for member in options.members]
    refuse_repeats(root / text for text, root in places)
    stores = _open(places, options.columns)
    path = paths.similarity(dataset, name, str(stores[0].split))
    if path.exists():
        made = System.open(path).made_from
        if not isinstance(made, Ensemble) or made.name != name:
            raise InputError(f"{path}: another system has that name; choose another one")
    weights = list(options.weights)
    tuned = None
    if options.on:
        weights, tuned = _tune(stores, options, settings)
    _fuse(path, (), stores, options.fusion, weights, options.keep_common, tuned)


def _open(places: Sequence[named_systems.Place], columns: judged.Columns) -> list[System]:
    """Open systems and scores from elsewhere, and say what these were read as."""
    opened = []
    for text, root in places:
        opened.append(open_recorded(text, columns, root))
    names = [text for text, _ in places]
    texts = [system.read_as for system in opened]
    named_systems.say_read_as(zip(names, texts, strict=True))
    return opened


def _mean(
    place: Callable[[str], Path], name: str, recipe: str, text: str, seed: int, keep_common: bool
) -> None:
    """Fuse the heads of a recipe on the features that the name's letters mean. place: from a name
    to its store.
    """
    features = features_of(name)
    stores = []
    for feature in features:
        member = system_name(recipe, feature, text, seed)
        stores.append(System.open_named(place(member)))
    path = place(system_name(recipe, name, text, seed))
    _fuse(path, features, stores, "mean", (), keep_common, None)


def _tune(
    stores: list[System], options: EnsembleOptions, settings: Settings
) -> tuple[list[float], dict[str, Any]]:
    """The weights that are best on the split val, and their record."""
    if options.weights:
        raise InputError("--weight and --tune-on are two sources of weights; give one")
    columns = replace(options.columns, split="val")
    places = [(str(path), Path()) for path in options.on]
    scored = _open(places, columns)
    _check([*stores, *scored])
    weightings = list(fuse.weightings(len(scored)))
    with Progress(f"tune {options.fusion}", "weighting", len(weightings)) as bar:
        chosen, tuned = fuse.tune(
            stores, scored, options.fusion, settings.evaluate.block_megabytes, bar.reach
        )
    shares = ", ".join(f"{weight:g}" for weight in chosen)
    rsum = f"RSUM {tuned['RSUM']:.1f} on val"
    say(f"weights {shares}: {rsum}, the best of {tuned['tried']}", err=False)
    return chosen, tuned


def _fuse(
    path: Path,
    features: Sequence[str],
    stores: list[System],
    fusion: str,
    weights: Sequence[float],
    keep_common: bool,
    tuned: dict[str, Any] | None,
) -> None:
    request = FuseRequest(
        name=path.stem,
        features=list(features),
        method=fusion,
        weights=shares_of(weights or None, len(stores)),
        keep_common=keep_common,
        tuned=tuned,
    )
    made = of_ensemble.made_from(request, stores)

    def write(draft: Draft) -> str:
        _check(stores)
        for store in stores[1:]:
            store.require_owners_of(stores[0])
        parts = stores
        left_out: list[int] = []
        if keep_common:
            parts, left_out = of_ensemble.common(stores)
        with Progress(path.stem, "image", parts[0].shape[0]) as bar:
            fuse.fuse(parts, fusion, request.weights).write(draft, made, fusion, bar.reach)
        fused = f"{fusion} of {', '.join(part.name for part in parts)}"
        if left_out:
            fused += f", {counted(len(left_out), 'image')} left out"
        return fused

    members = {f"member.{number}": store.reference for number, store in enumerate(stores)}
    unless_up_to_date(path, request, members, write)


def _check(stores: list[System]) -> None:
    """Compare stored scores with their digests; those of plain matrices are part of what they
    are.
    """
    for store in stores:
        if store.record:
            store.check()

"""Train and measure what the papers' claims are about, and say which of them hold here."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from pipeline.parts.errors import counted
from pipeline.settings.features import of_ensemble
from pipeline.settings.paths import Paths, system
from stages import options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeline import manifest
    from pipeline.evaluation import retrieval
    from pipeline.evaluation.retrieval import Metrics
    from pipeline.evaluation.statistics import contrast
    from pipeline.files.atomic import write_text
    from pipeline.settings import Settings
    from pipeline.studies import claims
    from pipeline.studies.claims import Claim, SystemOfClaim, Tested
    from pipeline.systems.scores.system import System
    from pipeline.training.checkpoint import read_description
    from pipeline.training.divergence import Diverged
    from pipeline.training.head import is_finished


@click.command
@click.option("--split", type=click.Choice(["val", "test"]), default="val", show_default=True,
              help="Where systems are measured. Look at val as often as you like; test is read once, at the end.")
@click.option("--no-training", is_flag=True,
              help="Test the claims with the seeds whose heads are finished, and train nothing.")
@options.with_settings
def command(paths: Paths, settings: Settings, split: str, no_training: bool) -> None:
    """Test the papers' claims of manifests/claims.yaml on run.dataset, with every seed of run.seeds.

    Heads that are missing are trained, on the first feature of run.features; those of ensembles on theirs. A run that
    was interrupted goes on. A head whose training fails is left out, and named. Claims about features that the run does
    not have are not tested. The schedule is that of training.DATASET; the papers have 25 epochs.

    Example: pipeline study -S run.dataset=flickr8k -S run.seeds=[0,1,2] -S training.light.epochs=25
    """
    known = claims.load(paths.root)
    wanted = [claim for claim in known if claims.can_be_tested(claim, settings.run.features)]
    sides = {(side.recipe, side.features): side for claim in wanted for side in (claim.better, claim.worse)}
    for side in sides.values():
        settings.recipe(side.recipe)  # a recipe that is not there is refused before the first is trained
    failed = [] if no_training else _train(settings, list(sides.values()))
    seeds = {key: [seed for seed in settings.run.seeds if _is_finished(paths, settings, side, seed)]
             for key, side in sides.items()}
    there = {key: side for key, side in sides.items() if seeds[key]}
    for key, side in there.items():
        _run("score", *_heads(settings, side, seeds[key]), "-S", f"score.split={split}",
             per_feature=_features(settings, side))
        if side.features != "R":
            for seed in seeds[key]:
                _run("ensemble", side.features, "--recipe", side.recipe, "--seed", str(seed), "--text",
                     settings.run.texts[0], "-S", f"score.split={split}")
    runs = {key: [_measure(paths, settings, side, seed, split) for seed in seeds[key]] for key, side in there.items()}
    tested = [_test(claim, runs, settings) for claim in known]
    contrast.correct([each.contrast for each in tested if each.contrast])
    heads = [folder for key, side in there.items() for seed in seeds[key]
             for folder in _folders(paths, settings, side, seed)]
    _write(paths, settings, tested, failed, split, _schedules(heads))


def _train(settings: Settings, sides: Sequence[SystemOfClaim]) -> list[str]:
    """Train what is missing. Return what happened to each head whose training failed."""
    failed = []
    for side in sides:
        for seed in settings.run.seeds:
            try:
                _run("train", *_heads(settings, side, [seed]), per_feature=_features(settings, side))
            except Diverged as error:
                failed.append(f"{side.recipe}, seed {seed}: {error}")
                click.echo(f"warning: {failed[-1]}", err=True)
    return failed


def _test(claim: Claim, runs: dict[tuple[str, str], list[Metrics]], settings: Settings) -> Tested:
    worse, better = (runs.get((side.recipe, side.features)) for side in (claim.worse, claim.better))
    found = (contrast.of(worse, better, settings.evaluate.resamples, settings.evaluate.seed)
             if worse is not None and better is not None else None)
    return claims.Tested(claim, claims.published_difference(claim.published), found)


def _features(settings: Settings, side: SystemOfClaim) -> tuple[str, ...]:
    return (settings.run.features[0],) if side.features == "R" else of_ensemble(side.features)


def _is_finished(paths: Paths, settings: Settings, side: SystemOfClaim, seed: int) -> bool:
    """Whether every head of a system is trained to its end."""
    return all(map(is_finished, _folders(paths, settings, side, seed)))


def _folders(paths: Paths, settings: Settings, side: SystemOfClaim, seed: int) -> list[Path]:
    """The heads of a system."""
    return [paths.head(settings.run.dataset, system(side.recipe, feature, settings.run.texts[0], seed))
            for feature in _features(settings, side)]


def _schedules(folders: Sequence[Path]) -> str:
    """How heads were trained, as they say it; where they differ, which were trained how."""
    found: dict[str, list[str]] = {}
    for folder in dict.fromkeys(folders):
        said = read_description(folder)
        how = ("d = {dimension}, batch {batch_size}, {length}, rate × 0.1 from epoch {decay_epoch}, {precision}"
                      ).format(length=counted(said["training"]["epochs"], "epoch"), **said["training"] | said["aside"])
        found.setdefault(how, []).append(folder.name)
    if len(found) < 2:
        return "".join(f"{how}; " for how in found)
    return "heads differ: " + "".join(f"{how} ({', '.join(names)}); " for how, names in found.items())


def _heads(settings: Settings, side: SystemOfClaim, seeds: Sequence[int]) -> list[str]:
    chosen = [word for seed in seeds for word in ("--seed", str(seed))]
    return ["--recipe", side.recipe, "--text", settings.run.texts[0], *chosen]


def _run(name: str, *arguments: str, per_feature: tuple[str, ...] = ()) -> None:
    """Run another command with this one's settings, once for each feature where there are such."""
    asked = click.get_current_context().params
    same = ["--root", str(asked["root"]), *(["--params", str(asked["params"])] if asked["params"] else []),
            *(word for change in asked["changes"] for word in ("-S", change))]
    for feature in per_feature or (None,):
        of = ["--feature", feature] if feature else []
        import_module(f"stages.{name}").command.main([*arguments, *of, *same], f"pipeline {name}",
                                                     standalone_mode=False)


def _measure(paths: Paths, settings: Settings, side: SystemOfClaim, seed: int, split: str) -> Metrics:
    """The metrics of a system's run of one seed."""
    run = settings.run
    part = run.features[0] if side.features == "R" else side.features
    rules: str = manifest.dataset(run.dataset).protocols[0] if split == "test" else "all"
    name = system(side.recipe, part, run.texts[0], seed)
    store = System.open(paths.similarity(run.dataset, name, split)).check()
    return retrieval.evaluate(store.scores, store.caption_image, rules,
                              block_megabytes=settings.evaluate.block_megabytes)


def _write(paths: Paths, settings: Settings, tested: list[Tested], failed: Sequence[str], split: str, schedules: str
           ) -> None:
    said = (f"{settings.run.dataset}, {split}; {settings.run.features[0]} features (R), {settings.run.texts[0]}, "
            f"{schedules}seeds {', '.join(map(str, settings.run.seeds))}.")
    table = claims.to_markdown(tested, said, failed)
    write_text(paths.claims.with_suffix(".md"), f"{table}\n")
    write_text(paths.claims, json.dumps([_as_json(each) | {"split": split} for each in tested], indent=1))
    click.echo(table)
    click.echo(f"{paths.claims}")


def _as_json(tested: Tested) -> dict[str, Any]:
    return {**tested.claim.model_dump(), "published_difference": tested.published, "measured": tested.contrast,
            "verdict": claims.verdict(tested.contrast)}

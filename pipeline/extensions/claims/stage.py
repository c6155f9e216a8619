"""What `pipeline lab study` does: trains what claims need, measures it, and says which hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, product
from pathlib import Path

from pipeline.extensions.claims import claims
from pipeline.extensions.claims.claims import SystemOfClaim, Tested
from pipeline.extensions.claims.command import StudyOptions
from pipeline.foundation import manifest
from pipeline.foundation.evaluation.metrics import Metrics, evaluate
from pipeline.foundation.evaluation.statistics import contrast
from pipeline.foundation.files import atomic
from pipeline.foundation.parts.errors import counted
from pipeline.foundation.settings import Run, Settings
from pipeline.foundation.settings.features import of_ensemble
from pipeline.foundation.settings.paths import Paths, system_name
from pipeline.judge.systems.scores.system import System
from pipeline.make import training
from pipeline.make.features.store import read_header
from stages import terminal
from stages.commands.ensemble import EnsembleOptions
from stages.commands.heads import TrainOptions
from stages.commands.scores import ScoreOptions
from stages.ensemble import ensemble
from stages.heads import train
from stages.progress import say
from stages.scores import score


def study(paths: Paths, settings: Settings, options: StudyOptions) -> None:
    """Test the papers' claims of manifests/claims.yaml on run.dataset, with every seed of
    run.seeds.
    """
    run = settings.run
    known = claims.load(paths.root)
    manifest.refuse_unknown(run.dataset, paths.root)
    sides = _sides(known, run)
    for side in sides:
        # An unknown recipe is refused before any training, and so are missing inputs.
        settings.recipe(side.recipe)
    failed: list[str] = []
    if not options.no_training:
        manifest.Manifest.load(paths.manifest(run.dataset))
        for side in sides:
            for feature in _features(run, side):
                read_header(paths.features(run.dataset, feature))
        failed = _train(paths, settings, sides, options.changed)
    heads = _finished(paths, run, sides)
    protocol = manifest.dataset(run.dataset, paths.root).protocols_of(options.split)[0]
    scoring = settings.score.model_copy(update={"split": options.split})
    of_split = settings.model_copy(update={"score": scoring})
    measured: dict[SystemOfClaim, list[Metrics]] = {}
    for side in sides:
        seeds = tuple(seed for seed in run.seeds if (side, seed) in heads)
        if seeds:
            measured[side] = _measure(paths, of_split, side, seeds, protocol)
    tested = _test(known, measured, settings)
    schedules = _schedules(list(chain(*heads.values())))
    inputs = f"{run.features[0]} features (R), {run.texts[0]}"
    seeds_of_run = ", ".join(map(str, run.seeds))
    heading = f"{run.dataset}, {options.split}; {inputs}, {schedules}seeds {seeds_of_run}."
    table = claims.to_markdown(tested, heading, failed)
    _write(paths.claims, tested, options.split, table)
    terminal.echo(claims.to_text(tested, heading, failed))
    say(f"{paths.claims}, and {paths.claims.with_suffix('.md').name} as a table", err=False)


def _sides(known: Sequence[claims.Claim], run: Run) -> list[SystemOfClaim]:
    """The systems of all claims that the run's features allow to be tested, each once."""
    sides: dict[SystemOfClaim, None] = {}
    for claim in known:
        if claims.can_be_tested(claim, run.features):
            sides[claim.better] = None
            sides[claim.worse] = None
    return list(sides)


def _features(run: Run, side: SystemOfClaim) -> tuple[str, ...]:
    if side.features == "R":
        return (run.features[0],)
    return of_ensemble(side.features)


def _train(
    paths: Paths, settings: Settings, sides: Sequence[SystemOfClaim], changed: tuple[str, ...]
) -> list[str]:
    """Train the heads of the claims with every seed; what failed, and why."""
    run = settings.run
    failed = []
    for side, seed in product(sides, run.seeds):
        try:
            for feature in _features(run, side):
                head = TrainOptions(
                    feature=feature,
                    text=run.texts[0],
                    recipes=(side.recipe,),
                    seeds=(seed,),
                    changed=changed,
                )
                train(paths, settings, head)
        except training.Diverged as error:
            failed.append(f"{side.recipe}, seed {seed}: {error}")
            say(f"warning: {failed[-1]}")
    return failed


def _finished(
    paths: Paths, run: Run, sides: Sequence[SystemOfClaim]
) -> dict[tuple[SystemOfClaim, int], list[Path]]:
    """The folders of the heads of each system and seed whose heads are all finished."""
    finished = {}
    for side, seed in product(sides, run.seeds):
        folders = []
        for feature in _features(run, side):
            name = system_name(side.recipe, feature, run.texts[0], seed)
            folders.append(paths.head(run.dataset, name))
        if all(map(training.HeadArtefact.is_finished, folders)):
            finished[side, seed] = folders
    return finished


def _measure(
    paths: Paths, settings: Settings, side: SystemOfClaim, seeds: tuple[int, ...], protocol: str
) -> list[Metrics]:
    """Score a system's heads with each seed, fuse them if it is an ensemble, and measure it."""
    run = settings.run
    text = run.texts[0]
    for feature in _features(run, side):
        score(
            paths,
            settings,
            ScoreOptions(feature=feature, text=text, recipes=(side.recipe,), seeds=seeds),
        )
    measured = []
    for seed in seeds:
        part = run.features[0]
        if side.features != "R":
            part = side.features
            heads = EnsembleOptions(name=part, text=text, recipe=side.recipe, seed=seed)
            ensemble(paths, settings, heads)
        name = system_name(side.recipe, part, text, seed)
        stored = paths.similarity(run.dataset, name, settings.score.split)
        system = System.open_named(stored).check()
        megabytes = settings.evaluate.block_megabytes
        measured.append(
            evaluate(system.scores, system.caption_image, protocol, block_megabytes=megabytes)
        )
    return measured


def _test(
    known: Sequence[claims.Claim],
    measured: Mapping[SystemOfClaim, list[Metrics]],
    settings: Settings,
) -> list[Tested]:
    """Compare the two systems of each claim that both were measured; the tests are corrected
    together.
    """
    pairs = {}
    for place, claim in enumerate(known):
        if claim.better in measured and claim.worse in measured:
            pairs[place] = (measured[claim.worse], measured[claim.better])
    testing = settings.evaluate
    contrasts = contrast.together([[*pairs.values()]], testing.resamples, testing.seed)
    contrast_of = dict(zip(pairs, chain(*contrasts), strict=True))
    tested = []
    for place, claim in enumerate(known):
        published = claims.published_difference(claim.published)
        tested.append(Tested(claim, published, contrast_of.get(place)))
    return tested


def _schedules(folders: Sequence[Path]) -> str:
    """How heads were trained; if they differ, with the names of the heads."""
    heads_of: dict[str, list[str]] = {}
    for folder in dict.fromkeys(folders):
        sizes = training.HeadArtefact.open(folder).request.training
        epochs = counted(sizes.epochs, "epoch")
        decay = counted(sizes.decay_epoch, "epoch")
        how = (
            f"d = {sizes.dimension}, batch {sizes.batch_size}, {epochs}, rate × 0.1 after {decay}, "
            f"{sizes.precision}"
        )
        heads_of.setdefault(how, []).append(folder.name)
    if len(heads_of) < 2:
        return "".join(f"{how}; " for how in heads_of)
    text = "heads differ: "
    for how, names in heads_of.items():
        text += f"{how} ({', '.join(names)}); "
    return text


def _write(path: Path, tested: Sequence[Tested], split: str, table: str) -> None:
    """Write the verdicts as JSON, and beside them the table as Markdown."""
    rows = []
    for of_claim in tested:
        result = {
            "published_difference": of_claim.published,
            "measured": of_claim.contrast,
            "verdict": claims.verdict(of_claim.contrast),
            "split": split,
        }
        rows.append(of_claim.claim.model_dump() | result)
    atomic.write_text(path.with_suffix(".md"), f"{table}\n")
    atomic.write_json(path, rows)

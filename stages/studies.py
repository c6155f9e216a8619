"""Studies: which of the papers' claims hold here, what GPO's generators learn, what poolings and
retrieval cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

from pipeline.foundation import manifest
from pipeline.foundation.evaluation.metrics import Metrics, evaluate
from pipeline.foundation.evaluation.statistics import contrast
from pipeline.foundation.files import atomic, results
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.foundation.settings import Run, Settings, Synthetic
from pipeline.foundation.settings.features import of_ensemble
from pipeline.foundation.settings.paths import Paths, system_name
from pipeline.judge.systems.reranking import base
from pipeline.judge.systems.scores.system import System
from pipeline.judge.tables import published, text
from pipeline.judge.tables.table import grid
from pipeline.make import training
from pipeline.make.features.store import read_header
from pipeline.run.studies import claims, synthetic
from stages import terminal
from stages.commands.ensemble import EnsembleOptions
from stages.commands.heads import TrainOptions
from stages.commands.scores import ScoreOptions
from stages.commands.studies import StudyOptions, SyntheticOptions, ThroughputOptions
from stages.ensemble import ensemble
from stages.heads import train
from stages.progress import Progress, say
from stages.scores import score

COLUMNS = {"rmse_seen": "seen", "rmse_unseen_smaller": "smaller", "rmse_unseen_larger": "larger"}
GENERATORS = {"/".join(design): design for design in synthetic.DESIGNS}


def study(paths: Paths, settings: Settings, options: StudyOptions) -> None:
    """Test the papers' claims of manifests/claims.yaml on run.dataset, with every seed of
    run.seeds.
    """
    run = settings.run
    known = claims.load(paths.root)
    manifest.refuse_unknown(run.dataset, paths.root)
    of_claims: list[claims.SystemOfClaim] = []
    for claim in known:
        if claims.can_be_tested(claim, run.features):
            of_claims += [claim.better, claim.worse]
    sides = list(dict.fromkeys(of_claims))
    for side in sides:
        # An unknown recipe is refused before any training, and so are missing inputs.
        settings.recipe(side.recipe)
    failed = []
    if not options.no_training:
        manifest.Manifest.load(paths.manifest(run.dataset))
        for side in sides:
            for feature in _features(run, side):
                read_header(paths.features(run.dataset, feature))
        failed = _train(paths, settings, sides, options.changed)
    folders = {
        (side, seed): [
            paths.head(run.dataset, system_name(side.recipe, feature, run.texts[0], seed))
            for feature in _features(run, side)
        ]
        for side, seed in product(sides, run.seeds)
    }
    finished = {
        key: heads
        for key, heads in folders.items()
        if all(map(training.HeadArtefact.is_finished, heads))
    }
    rules = manifest.dataset(run.dataset, paths.root).protocols_of(options.split)[0]
    runs: dict[claims.SystemOfClaim, list[Metrics]] = {}
    of_split = settings.model_copy(
        update={"score": settings.score.model_copy(update={"split": options.split})}
    )
    for side in sides:
        seeds = tuple(seed for seed in run.seeds if (side, seed) in finished)
        for feature in _features(run, side) if seeds else ():
            of_seeds = ScoreOptions(
                feature=feature, text=run.texts[0], recipes=(side.recipe,), seeds=seeds
            )
            score(paths, of_split, of_seeds)
        for seed in seeds:
            part = run.features[0]
            if side.features != "R":
                part = side.features
                of_heads = EnsembleOptions(
                    name=part, text=run.texts[0], recipe=side.recipe, seed=seed
                )
                ensemble(paths, of_split, of_heads)
            name = system_name(side.recipe, part, run.texts[0], seed)
            store = System.open_named(paths.similarity(run.dataset, name, options.split)).check()
            runs.setdefault(side, []).append(
                evaluate(
                    store.scores,
                    store.caption_image,
                    rules,
                    block_megabytes=settings.evaluate.block_megabytes,
                )
            )
    pairs = {
        place: (runs[claim.worse], runs[claim.better])
        for place, claim in enumerate(known)
        if {claim.worse, claim.better} <= runs.keys()
    }
    contrasts = contrast.together(
        [*pairs.values()], settings.evaluate.resamples, settings.evaluate.seed
    )
    measured = dict(zip(pairs, contrasts, strict=True))
    tested = [
        claims.Tested(claim, claims.published_difference(claim.published), measured.get(place))
        for place, claim in enumerate(known)
    ]
    schedules = _schedules([folder for heads in finished.values() for folder in heads])
    heading = (
        f"{run.dataset}, {options.split}; {run.features[0]} features (R), {run.texts[0]}, {schedules}seeds "
        f"{', '.join(map(str, run.seeds))}."
    )
    atomic.write_text(
        paths.claims.with_suffix(".md"), f"{claims.to_markdown(tested, heading, failed)}\n"
    )
    atomic.write_json(
        paths.claims,
        [
            {
                **each.claim.model_dump(),
                "published_difference": each.published,
                "measured": each.contrast,
                "verdict": claims.verdict(each.contrast),
                "split": options.split,
            }
            for each in tested
        ],
    )
    terminal.echo(claims.to_text(tested, heading, failed))
    say(f"{paths.claims}, and {paths.claims.with_suffix('.md').name} as a table", err=False)


def _features(run: Run, side: claims.SystemOfClaim) -> tuple[str, ...]:
    return (run.features[0],) if side.features == "R" else of_ensemble(side.features)


def _schedules(folders: Sequence[Path]) -> str:
    """How heads were trained; if they differ, with the names of the heads."""
    heads_of: dict[str, list[str]] = {}
    for folder in dict.fromkeys(folders):
        sizes = training.HeadArtefact.open(folder).request.training
        how = (
            f"d = {sizes.dimension}, batch {sizes.batch_size}, {counted(sizes.epochs, 'epoch')}, rate × 0.1 after "
            f"{counted(sizes.decay_epoch, 'epoch')}, {sizes.precision}"
        )
        heads_of.setdefault(how, []).append(folder.name)
    if len(heads_of) < 2:
        return "".join(f"{how}; " for how in heads_of)
    return "heads differ: " + "".join(
        f"{how} ({', '.join(names)}); " for how, names in heads_of.items()
    )


def _train(
    paths: Paths,
    settings: Settings,
    sides: Sequence[claims.SystemOfClaim],
    changed: tuple[str, ...],
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


def learn_patterns(paths: Paths, settings: Settings, options: SyntheticOptions) -> None:
    """Train GPO's generators on known pooling patterns, as VSE∞ Table 11; write RMSE beside the
    published numbers.
    """
    with atomic.exclusive(paths.synthetic):  # results of earlier runs are kept in it
        done: dict[tuple[str, str], dict[str, Any]] = {}
        asked = settings.synthetic
        if paths.synthetic.exists():  # what an earlier run with the same settings found
            earlier = results.read_json(paths.synthetic, "lab synthetic")
            if earlier.get("settings") == asked.model_dump():
                done = {
                    (f"{row['input_repr']}/{row['decoder']}", row["pattern"]): row
                    for row in earlier["rows"]
                }
        for generator, pattern in product(
            options.generators or GENERATORS, options.patterns or synthetic.PATTERNS
        ):
            if (generator, pattern) not in done:
                done[generator, pattern] = _learned(asked, generator, pattern)
                atomic.write_json(
                    paths.synthetic, {"settings": asked.model_dump(), "rows": list(done.values())}
                )
        terminal.echo(_table(list(done.values())))
        say(str(paths.synthetic), err=False)


def _learned(asked: Synthetic, generator: str, pattern: str) -> dict[str, Any]:
    design = GENERATORS[generator]
    with Progress(f"{generator} {pattern}", "step", asked.steps) as bar:
        gpo = synthetic.train(design, pattern, asked, lambda loss: bar.step(f"loss {loss:.2g}"))
    return {
        "input_repr": design[0],
        "decoder": design[1],
        "pattern": pattern,
        **synthetic.errors(gpo, pattern, asked),
    }


def _table(rows: list[dict[str, Any]]) -> str:
    printed = {
        (row["input_repr"], row["decoder"], row["pattern"]): row
        for row in published.load("vse_infty_table11")
    }
    cells = []
    for row in rows:
        paper = printed.get((row["input_repr"], row["decoder"], row["pattern"]))
        cells.append(
            [
                f"{row['input_repr']}/{row['decoder']}  {row['pattern']}",
                *(
                    f"{row[column]:.3f}" + (f" ({float(paper[column]):.3f})" if paper else "")
                    for column in COLUMNS
                ),
            ]
        )
    return "\n".join(text.to_text(grid(("RMSE, here (published)", *COLUMNS.values()), {"": cells})))


def measure_throughput(paths: Paths, settings: Settings, options: ThroughputOptions) -> None:
    """Time every recipe's pooling, a query's answer and a cross-encoder's cost into
    results/throughput.json.
    """
    if (options.retriever is None) != (options.scorer is None):
        raise InputError("give both --retriever and --with, or neither")
    if options.retriever and options.scorer:  # a wrong name is refused before torch is imported
        dataset = settings.run.dataset
        training.HeadArtefact.open(paths.head(dataset, options.retriever))
        System.open_vectors(paths.similarity(dataset, options.retriever, settings.score.split))
    from pipeline.run.studies import throughput  # and with it torch

    with Progress("throughput", "step") as bar:
        query = {}
        if options.retriever and options.scorer:  # first, because systems may be refused
            dataset = settings.run.dataset
            source = base.PairSource(
                paths,
                dataset,
                dataset,
                dataset,
                settings.throughput.device,
                settings.throughput.reranked,
                settings.score.split,
            )
            query["query"] = throughput.measure_query(
                source, options.retriever, options.scorer, settings.throughput, bar.step
            )
        measured = (
            throughput.measure(
                settings.recipes,
                settings.training_of(settings.run.dataset),
                settings.throughput,
                bar.step,
            )
            | query
        )
    atomic.write_json(paths.throughput, measured)
    say(
        f"{paths.throughput}: {measured['made_with']['processor']}, {measured['made_with']['machine']}",
        err=False,
    )
    (slowest, least), (fastest, most) = (
        of(measured["poolings"].items(), key=itemgetter(1)) for of in (min, max)
    )
    say(
        f"  images pooled a second: from {least:,.0f} ({slowest}) to {most:,.0f} ({fastest})",
        err=False,
    )
    if timed := measured.get("query"):
        say(
            f"  one query: {1000 * timed['retrieve']:.1f} ms by {options.retriever}, {1000 * timed['both']:.1f} ms with "
            f"its best {timed['k']} reranked by {options.scorer}: {timed['ratio']:.1f} times",
            err=False,
        )
    if measured["busy"]:
        say(
            f"warning: other work used {measured['others']:.1f} cores meanwhile, and the times are marked; run "
            "`pipeline lab throughput` again on an idle machine"
        )

"""Studies: what GPO's generators learn, and what poolings and retrieval cost."""

from __future__ import annotations

from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

from pipeline.foundation.files import atomic, results
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Settings, Synthetic
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.reranking import base
from pipeline.judge.systems.scores.system import System
from pipeline.judge.tables import published, text
from pipeline.judge.tables.table import grid
from pipeline.make import training
from pipeline.run.studies import synthetic
from stages import terminal
from stages.commands.studies import SyntheticOptions, ThroughputOptions
from stages.progress import Progress, say

COLUMNS = {"rmse_seen": "seen", "rmse_unseen_smaller": "smaller", "rmse_unseen_larger": "larger"}
GENERATORS = {"/".join(design): design for design in synthetic.DESIGNS}


def learn_patterns(paths: Paths, settings: Settings, options: SyntheticOptions) -> None:
    """Train GPO's generators on known pooling patterns, as VSE∞ Table 11; write RMSE beside the
    published numbers.
    """
    asked = settings.synthetic
    generators = options.generators or GENERATORS
    patterns = options.patterns or synthetic.PATTERNS
    with atomic.exclusive(paths.synthetic):  # results of earlier runs are kept in it
        done = _learned_before(paths.synthetic, asked)
        for generator, pattern in product(generators, patterns):
            if (generator, pattern) in done:
                continue
            done[generator, pattern] = _learned(asked, generator, pattern)
            content = {"settings": asked.model_dump(), "rows": list(done.values())}
            atomic.write_json(paths.synthetic, content)
        terminal.echo(_table(list(done.values())))
        say(str(paths.synthetic), err=False)


def _learned_before(file: Path, asked: Synthetic) -> dict[tuple[str, str], dict[str, Any]]:
    """What earlier runs with the same settings found, by generator and pattern."""
    if not file.exists():
        return {}
    earlier = results.read_json(file, "lab synthetic")
    if earlier.get("settings") != asked.model_dump():
        return {}
    done = {}
    for row in earlier["rows"]:
        generator = f"{row['input_repr']}/{row['decoder']}"
        done[generator, row["pattern"]] = row
    return done


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
    generator_and_pattern = itemgetter("input_repr", "decoder", "pattern")
    printed = {}
    for paper in published.load("vse_infty_table11"):
        printed[generator_and_pattern(paper)] = paper
    table = []
    for row in rows:
        trained = generator_and_pattern(row)
        cells = ["{}/{}  {}".format(*trained)]
        for column in COLUMNS:
            cell = f"{row[column]:.3f}"
            if trained in printed:
                cell += f" ({float(printed[trained][column]):.3f})"
            cells.append(cell)
        table.append(cells)
    headings = ("RMSE, here (published)", *COLUMNS.values())
    return "\n".join(text.to_text(grid(headings, {"": table})))


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

    how = settings.throughput
    with Progress("throughput", "step") as bar:
        query = {}
        if options.retriever and options.scorer:  # first, because systems may be refused
            dataset = settings.run.dataset
            source = base.PairSource(
                paths,
                dataset,
                dataset,
                dataset,
                how.device,
                how.reranked,
                settings.score.split,
            )
            query["query"] = throughput.measure_query(
                source, options.retriever, options.scorer, how, bar.step
            )
        training_settings = settings.training_of(settings.run.dataset)
        measured = throughput.measure(settings.recipes, training_settings, how, bar.step)
        measured |= query
    atomic.write_json(paths.throughput, measured)
    machine = measured["made_with"]
    say(f"{paths.throughput}: {machine['processor']}, {machine['machine']}", err=False)
    rates = measured["poolings"]
    slowest = min(rates, key=rates.__getitem__)
    fastest = max(rates, key=rates.__getitem__)
    pooled = f"from {rates[slowest]:,.0f} ({slowest}) to {rates[fastest]:,.0f} ({fastest})"
    say(f"  images pooled a second: {pooled}", err=False)
    timed = measured.get("query")
    if timed:
        retrieved = 1000 * timed["retrieve"]
        both = 1000 * timed["both"]
        say(
            f"  one query: {retrieved:.1f} ms by {options.retriever}, {both:.1f} ms with "
            f"its best {timed['k']} reranked by {options.scorer}: {timed['ratio']:.1f} times",
            err=False,
        )
    if measured["busy"]:
        say(
            f"warning: other work used {measured['others']:.1f} cores meanwhile, and the times are marked; run "
            "`pipeline lab throughput` again on an idle machine"
        )

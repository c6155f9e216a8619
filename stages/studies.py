"""Studies: what GPO's generators learn, and what poolings and retrieval cost."""

from __future__ import annotations

from itertools import product
from operator import itemgetter
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

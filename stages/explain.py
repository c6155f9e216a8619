"""Find out why a published number cannot be reproduced."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.foundation.parts.wrapping import TERMINAL
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.explain import explained, printed
from pipeline.judge.explain.differences import Measurement
from pipeline.judge.explain.opening import Source, of_seeds
from pipeline.judge.explain.search import search
from pipeline.judge.systems.scores import judged
from pipeline.judge.systems.scores.foreign import results_file
from pipeline.judge.systems.scores.measured import lists_of
from pipeline.judge.tables import evaluated
from pipeline.run.studies import cut_captions
from stages import named_systems, terminal
from stages.commands.explain import ExplainOptions
from stages.progress import Progress


def explain(paths: Paths, settings: Settings, options: ExplainOptions) -> None:
    """Print which differences of measurement give published numbers, nearest first."""
    numbers, row = printed.read(options.published)
    folder = None
    if settings.evaluate.cxc:
        folder = Path(settings.evaluate.cxc)
    embedded_again = None
    if options.encoder is not None:
        embedded_again = partial(cut_captions.open_encoder, options.encoder)
    title, places = named_systems.named(paths, settings, options.scores, options.dataset)
    columns = replace(options.columns, judgements=options.truth.qrels)
    first = Source(
        *places[0],
        paths,
        columns,
        options.normalise,
        options.truth,
        folder,
        embedded_again,
        options.rules,
        row,
    )
    opened = first.open()
    own = opened.system.judgements
    if own is not None and options.truth.qrels is None:  # of the file of scores itself
        truth = replace(options.truth, qrels=own.path)
        first = replace(first, truth=truth, columns=replace(columns, judgements=own.path))
        opened = first.open()
    seeds = []
    read_as = []
    for number, (text, root) in enumerate(places):
        seed = opened
        if number:
            seed = replace(first, text=text, root=root).open()
        seeds.append(seed)
        read_as.append((text, seed.system.read_as))
    named_systems.say_read_as(read_as)
    splits, split, chosen, system = of_seeds(seeds, title)
    right = "own"
    if options.truth.same_text:
        right = "merged"
    if first.truth.qrels:
        right = "qrels"
    # Tokens are divided when they are read.
    is_unit = options.normalise and splits[split].vectors is not None
    base = Measurement.by(chosen, options.ties, is_unit, split, right)
    lacking = splits[split].lacks(base)
    if lacking:
        raise InputError(
            f"{options.scores}: protocol {chosen.name} needs {lacking}; give {explained.HOW[lacking]}"
        )
    measured = evaluate(
        system.scores, system.truth, chosen, options.ties, settings.evaluate.block_megabytes
    )
    with Progress(f"explain {splits[split].name}", "ranking") as bar:

        def reach(done: int, total: int) -> None:
            bar.total = total
            bar.reach(done)

        found = search(splits, base, chosen, numbers, options.most, reach, row)
    notes = [*judged.notes_of_vectors(system), *judged.notes(system, measured)]
    described = {"sides": system.sides, "queries": measured.queries}
    notes += evaluated.of_lists(described | {"lists": lists_of(system, measured)})
    of_file = results_file.queries(options.published)
    if of_file is not None and of_file not in measured.queries.values():
        asked = max(measured.queries.values())
        notes.append(
            f"{options.published}: its numbers are of {counted(of_file, 'query')} (num_data), these scores have "
            f"{asked:,}"
        )
    found = replace(found, notes=(*notes, *found.notes))
    if options.output == "json":
        terminal.echo(json.dumps(explained.to_json(found), indent=1))
    elif options.output == "markdown":
        terminal.echo(explained.to_markdown(found, options.rows))
    else:
        width = terminal.width(sys.stdout) or TERMINAL
        terminal.echo(explained.to_text(found, options.rows, width, terminal.strong))

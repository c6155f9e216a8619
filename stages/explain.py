"""Find out why a published number cannot be reproduced."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.parts.wrapping import TERMINAL
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.explain import explained, printed
from pipeline.judge.explain.differences import Measurement
from pipeline.judge.explain.opening import Source
from pipeline.judge.explain.search import search
from pipeline.judge.systems.scores import judged
from pipeline.run.studies import cut_captions
from stages import named_systems, terminal
from stages.arguments import refuse_repeats
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
    first, *others = _seeds(paths, options.scores)
    source = Source(
        first,
        paths,
        options.dataset or settings.run.dataset,
        settings.score.split,
        options.columns,
        options.normalise,
        options.truth,
        folder,
        embedded_again,
        options.rules,
        row,
    )
    splits, split, chosen, system = source.open()
    named_systems.say_read_as([(first, system.read_as)])
    splits = dict(splits)
    for other in others:
        opened = replace(source, text=other).open()
        if opened.split != split or not np.array_equal(
            opened.splits[split].owner, splits[split].owner
        ):
            raise InputError(f"{other}: is of other images or captions than {first}")
        for name, pool in splits.items():
            if name in opened.splits:
                splits[name] = replace(pool, others=(*pool.others, opened.splits[name]))
    right = "own"
    if options.truth.same_text:
        right = "merged"
    if options.truth.qrels:
        right = "qrels"
    base = Measurement.by(chosen, options.ties, options.normalise, split, right)
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
    found = replace(found, notes=(*notes, *found.notes))
    if options.output == "json":
        terminal.echo(json.dumps(explained.to_json(found), indent=1))
    elif options.output == "markdown":
        terminal.echo(explained.to_markdown(found, options.rows))
    else:
        width = terminal.width(sys.stdout) or TERMINAL
        terminal.echo(explained.to_text(found, options.rows, width, terminal.strong))


def _seeds(paths: Paths, text: str) -> list[str]:
    """What is named as one seed each: several with commas between, if there is no such file."""
    if (paths.root / text).exists():
        return [text]
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError(f"{text!r}: expected names of scores with one comma between")
    refuse_repeats(paths.root / name for name in names)
    return names

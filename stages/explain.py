"""Search why a published number is not reached."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from pipeline.evaluation.metrics import evaluate
from pipeline.evaluation.retrieval import Protocol, Ties
from pipeline.parts.errors import InputError
from pipeline.settings import Settings
from pipeline.settings.paths import Paths
from pipeline.studies.explain import explained, printed
from pipeline.studies.explain.differences import Measurement
from pipeline.studies.explain.opening import Source
from pipeline.studies.explain.search import search
from pipeline.systems.scores import judged
from pipeline.systems.scores.judged import Columns, Truth
from stages import named_systems, terminal
from stages.progress import Progress


def explain(
    paths: Paths,
    settings: Settings,
    scores: str,
    published: str,
    dataset: str | None = None,
    columns: Columns = Columns(),
    normalise: bool = False,
    truth: Truth = Truth(),
    rules: Protocol | None = None,
    ties: Ties = "expected",
    encoder: str | None = None,
    most: int = 3,
    rows: int = 10,
    output: str = "text",
) -> None:
    """Print which differences of measurement give published numbers, nearest first."""
    numbers, row = printed.read(published)
    folder = settings.evaluate.cxc
    source = Source(
        scores,
        paths,
        dataset or settings.run.dataset,
        settings.score.split,
        columns,
        normalise,
        truth,
        Path(folder) if folder else None,
        encoder,
        rules,
        row,
    )
    splits, split, chosen, system = source.open()
    named_systems.say_read_as(scores, system)
    right = "merged" if truth.same_text else "own"
    if truth.qrels:
        right = "qrels"
    base = Measurement.by(chosen, ties, normalise, split, right)
    if lacking := splits[split].lacks(base):
        raise InputError(
            f"{scores}: protocol {chosen.name} needs {lacking}; give {explained.HOW[lacking]}"
        )
    with Progress(f"explain {splits[split].name}", "ranking") as bar:

        def reach(done: int, total: int) -> None:
            bar.total = total
            bar.reach(done)

        found = search(splits, base, chosen, numbers, most, reach, row)
    measured = evaluate(
        system.scores, system.truth, chosen, ties, settings.evaluate.block_megabytes
    )
    notes = [*judged.notes_of_vectors(system), *judged.notes(system, measured)]
    found = replace(found, notes=(*notes, *found.notes))
    if output == "json":
        terminal.echo(json.dumps(explained.to_json(found), indent=1))
    elif output == "markdown":
        terminal.echo(explained.to_markdown(found, rows))
    else:
        terminal.echo(explained.to_text(found, rows, terminal.width(sys.stdout), terminal.strong))

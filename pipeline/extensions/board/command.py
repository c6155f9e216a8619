"""The options of `pipeline board`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from stages import declared, measuring, options
from stages.values import FilePath

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.retrieval import Protocol, Ties
    from pipeline.judge.systems.scores.judged import Columns

RULES = ("mean-rank", "borda", "wins")


@dataclass(frozen=True, kw_only=True)
class BoardOptions(declared.Options):
    """Rank many systems on many tasks: paired tests and rank intervals within each task, places
    over tasks, and how these change when one task is left out.

    TASK=FILE is a system's file of scores or hits on a task; TASK=FILE,FILE and TASK="PATTERN" are
    several systems, each called by its file's name without the ending; a system has the same name
    on every task. TASK=SYSTEM=FILE names it, and TASK=SYSTEM=FILE,FILE are its seeds, averaged
    query by query. A FOLDER holds TASK/SYSTEM.npz or other files of scores, TASK/SYSTEM/ with one
    file for each seed, and TASK/qrels.txt; or mteb's predictions, MODEL/TASK_predictions.json; or
    MMEB's, MODEL/TASK_pred.jsonl.

    A cell without a file is missing, not zero: such a system has its rank on its own tasks and no
    place over tasks. Nothing is tested over tasks.

    Example: pipeline board "flickr=hits/flickr/*.npz" "coco=hits/coco/*.npz"

    Example: pipeline board hits --unit xm3600=xm3600-en,xm3600-de --csv
    """

    tasks: Annotated[
        tuple[str, ...],
        click.argument("tasks", nargs=-1, required=True, metavar="TASK=FILE|FOLDER ..."),
    ]
    dataset: Annotated[str | None, options.dataset] = None
    columns: Annotated["Columns", measuring.columns] = field(
        default_factory=measuring.columns.default
    )
    qrels: Annotated[
        tuple[str, ...],
        click.option(
            "--qrels",
            multiple=True,
            metavar="[TASK=]FILE",
            help="The right answers, as for `evaluate`: of all tasks, or of one. May be given several times.",
        ),
    ] = ()
    same_text: Annotated[
        str | None,
        click.option(
            "--same-text",
            type=click.Choice(["positive"]),
            help="Count captions of equal text as one query, for which the images of all of them are right.",
        ),
    ] = None
    rules: Annotated["Protocol | None", measuring.rules] = None
    ties: Annotated["Ties", measuring.ties] = "expected"
    metrics: Annotated[
        tuple[str, ...],
        click.option(
            "--metric",
            multiple=True,
            metavar="[TASK=]METRIC",
            show_default="RSUM",
            help="What systems are ranked by, on all tasks or on one: R@1, nDCG@10, or of one direction 'i2t R@1'; "
            "otherwise the mean of both directions. May be given several times.",
        ),
    ] = ()
    units: Annotated[
        tuple[str, ...],
        click.option(
            "--unit",
            multiple=True,
            metavar="NAME=TASK,TASK",
            help="Tasks that ask one question, such as translations of the same captions; they count as one over "
            "tasks. Patterns such as xm3600-* work. Languages of one file are one unit by themselves.",
        ),
    ] = ()
    rule: Annotated[
        str,
        click.option(
            "--rule",
            type=click.Choice(RULES),
            default="mean-rank",
            show_default=True,
            help="What gives a place: the mean over units of the rank in each; Borda's count of how many others are "
            "below (the same order); or how many others a system beats on most units.",
        ),
    ] = "mean-rank"
    models: Annotated[
        Path | None,
        click.option(
            "--models",
            type=FilePath(dir_okay=False),
            metavar="FILE",
            help="Facts of the systems: a CSV with a column `system` and columns of numbers, such as parameters.",
        ),
    ] = None
    page: Annotated[
        Path | None,
        click.option(
            "--page",
            type=options.OutputPath(),
            metavar="FILE",
            help="Also write the board as a page, .html.",
        ),
    ] = None
    output: Annotated[
        str,
        measuring.printed(
            markdown="Markdown",
            latex="tables in LaTeX",
            csv="CSV, a line for each task and system, numbers unrounded",
            json="JSON, with every pair",
        ),
    ] = "text"


board_command = declared.command(
    BoardOptions, "pipeline.extensions.board.stage:board", declared.with_settings_or_shipped
)

"""The command line of `stages.compare`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from stages import declared, measuring, options
from stages.values import PicturePath

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.retrieval import Protocol, Ties
    from pipeline.judge.systems.scores.judged import Columns, Truth


@dataclass(frozen=True, kw_only=True)
class CompareOptions(declared.Options):
    """Test systems against each other on the same queries, images and captions aligned by id; with
    three or more, every pair.

    Each is a system's name (vse2ad-RG-bigru-s0), a name without its seed (vse2ad-RG-bigru: all its
    seeds), a path of a similarity store or matrix, or several of these with commas between: seeds
    of one system. TITLE=… names it. With two or more seeds of both systems, intervals and p say how
    much would vary with other seeds and another sample of images; otherwise with another sample of
    images alone. With captions in several languages, each language is also compared by itself.
    Where a difference is not significant, the table says how many images, or seeds of each system,
    would make it so; with --margin, also whether the systems are equal within it. Of three or more
    systems, those that share a letter do not differ significantly; the column rank has the best
    and the worst possible rank of each.

    Example: pipeline compare vse2ad-R-bigru vse2ad-RGP-bigru

    Example: pipeline compare theirs.npy "Ours=seed0.npy,seed1.npy" --figure compared.pdf

    Example: pipeline compare full.npy quantised.npy --margin 0.5
    """

    systems: Annotated[
        tuple[str, ...],
        click.argument(
            "systems",
            nargs=-1,
            required=True,
            metavar="A B [C ...]",
            shell_complete=options.names("scored"),
        ),
    ]
    dataset: Annotated[str | None, options.dataset] = None
    columns: Annotated["Columns", measuring.columns] = field(
        default_factory=measuring.columns.default
    )
    truth: Annotated["Truth", measuring.truth] = field(default_factory=measuring.truth.default)
    rules: Annotated["Protocol | None", measuring.rules] = None
    ties: Annotated["Ties", measuring.ties] = "expected"
    metrics: Annotated[
        tuple[str, ...],
        click.option(
            "--metric",
            metavar="NAME",
            multiple=True,
            help="Also compare by this metric, as ir_measures writes it: nDCG@10, MRR, AP; corrected together with "
            "the recalls. May be given several times.",
        ),
    ] = ()
    margin: Annotated[
        float | None,
        click.option(
            "--margin",
            type=click.FloatRange(0, 100, min_open=True, max_open=True),
            metavar="POINTS",
            help="Also say whether systems are equal within this many percent points of a recall; of RSUM, the sum of six "
            "recalls, within six times as many.",
        ),
    ] = None
    output: Annotated[
        str,
        measuring.printed(
            markdown="Markdown",
            latex="tables in LaTeX",
            csv="CSV, a line for each metric, numbers unrounded",
            json="JSON, an object for each pair",
        ),
    ] = "text"
    figures: Annotated[
        tuple[Path, ...],
        click.option(
            "--figure",
            type=PicturePath(),
            multiple=True,
            metavar="FILE",
            help="Also draw recall against K with 95 % bands, and the differences with their intervals: .pdf, .svg "
            "or .png, with the numbers beside it as .csv; or .csv alone. As wide as typesetting.text_width. May be "
            "given several times.",
        ),
    ] = ()
    fdr: Annotated[
        bool,
        declared.flag(
            "--fdr",
            help="For a search among many pairs: correct p so that on average at most 5 % of the differences found are "
            "false (q of Benjamini and Yekutieli), instead of so that none is false in 95 % of cases. There are then no "
            "letters and no ranks.",
        ),
    ] = False
    explain: Annotated[
        bool,
        declared.flag("--explain", help="Explain below the table how to read each of its numbers."),
    ] = False


compare_command = declared.command(
    CompareOptions, "compare.compare", declared.with_settings_or_shipped
)

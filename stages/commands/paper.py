"""The command line of `stages.paper`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from stages import declared, options, values

if TYPE_CHECKING:
    from pipeline.judge.tables.latex import Style
    from pipeline.judge.tables.table import Rows


@dataclass(frozen=True, kw_only=True)
class TablesOptions(declared.Options):
    r"""Write tables as LaTeX and Markdown, published rows, then measured ones: those with a row of
    the run's systems.

    A .tex file is for \input; its first line names the packages that it needs. It fits the widths
    in the section typesetting of params.yaml: one column of the page or both, in type of 9 or 8
    points, else 7. If a table is wider, its test sets are set below each other. Its comments, and
    the .md file, say what made the numbers. preview.tex shows all tables.

    The poolings' #OIPs come from results/throughput.json, where `pipeline lab throughput` made it;
    errors on synthetic patterns from results/synthetic.json, by `pipeline lab synthetic`; larger
    pools and zero-shot retrieval from results/recorded.json, by `pipeline evaluate --record`.
    Earlier files of other tables stay as they are.

    A system that is in no paper's table is named, with the reason; the table `systems` has all.

    Example: pipeline tables --only measured --columns R@1,RSUM

    Example: pipeline tables --table vse2ad_table1 --table systems
    """

    chosen: Annotated[
        tuple[str, ...],
        click.option(
            "--table",
            multiple=True,
            metavar="NAME",
            show_default="those with a row of the run's systems",
            help="Write this table alone: vse2ad_table1 and the like; or systems, which has all that was measured. "
            "May be given several times.",
        ),
    ] = ()
    every: Annotated[
        bool,
        declared.flag("--all", help="Write the tables without a row of the run's systems, too."),
    ] = False
    delta: Annotated[
        bool,
        declared.flag("--delta", help="Add a column of differences to the published numbers."),
    ] = False
    letters: Annotated[
        bool,
        declared.flag(
            "--letters",
            help="Add a column of letters after each RSUM: measured rows that share one do not differ significantly.",
        ),
    ] = False
    only: Annotated[
        "Rows | None",
        click.option(
            "--only", type=click.Choice(["published", "measured"]), help="Only these rows."
        ),
    ] = None
    columns: Annotated[
        tuple[str, ...] | None,
        click.option(
            "--columns",
            type=values.Names(),
            metavar="NAMES",
            help="Columns instead of the paper's: metrics of each direction and RSUM: R@1,RSUM.",
        ),
    ] = None
    style: Annotated[
        "Style | None",
        click.option(
            "--style",
            type=click.Choice(["booktabs", "plain"]),
            help="Rules of booktabs, or LaTeX's own.",
        ),
    ] = None


tables_command = declared.command(
    TablesOptions, "paper.write_tables", declared.with_settings_or_shipped, options.of_dataset
)


@dataclass(frozen=True, kw_only=True)
class FiguresOptions(declared.Options):
    r"""Draw the settings' figures as PDF, SVG and PNG, each with its numbers as CSV and a float for
    \input.

    A figure whose inputs are missing is left out; the command and results/figures/index.md name
    them. Earlier files of figures stay if the settings do not list these, or if no figure can be
    drawn.

    Example: pipeline figures
    """

    images: Annotated[Path | None, options.images(in_store=False)] = None


figures_command = declared.command(
    FiguresOptions, "paper.draw_figures", declared.with_settings, options.of_dataset
)

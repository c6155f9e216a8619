"""Write the papers' tables."""

from __future__ import annotations

import json
import shutil

import click

from pipeline.errors import InputError
from pipeline.report import latex, markdown, tables
from pipeline.settings import Settings
from stages.layout import Layout
from stages.options import with_settings


@click.command
@click.option("--delta", is_flag=True, help="Add a column of differences to the published numbers.")
@with_settings
def command(layout: Layout, settings: Settings, delta: bool) -> None:
    r"""Write the settings' tables as LaTeX and Markdown: published rows, and those of results/metrics.json apart.

    A .tex file is taken with \input and needs booktabs, graphicx and xcolor; preview.tex is a document of all of them.

    Example: pipeline tables --delta
    """
    try:
        measured = json.loads(layout.metrics.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{layout.metrics}: not there; make it with `pipeline evaluate`") from None
    except ValueError:
        raise InputError(f"{layout.metrics}: not JSON; make it again with `pipeline evaluate`") from None
    built = {name: tables.build(name, measured, delta) for name in settings.tables}
    making = layout.tables.with_name("tables.creating")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    for name, table in built.items():
        (making / f"{name}.tex").write_text(latex.to_latex(table), encoding="utf-8")
        (making / f"{name}.md").write_text(markdown.to_markdown(table), encoding="utf-8")
    (making / "preview.tex").write_text(latex.preview(list(built.values())), encoding="utf-8")
    shutil.rmtree(layout.tables, ignore_errors=True)
    making.rename(layout.tables)
    click.echo(f"{layout.tables}: " + ", ".join(f"{name}.tex, {name}.md" for name in built))

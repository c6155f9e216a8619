"""Write the papers' tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stages.options import with_settings_or_shipped
from stages.paths import Paths

if TYPE_CHECKING:
    from pipeline.files.results import read_json, texts, updating
    from pipeline.provenance import results
    from pipeline.report import latex, markdown, tables
    from pipeline.settings import Settings
    from pipeline.studies import synthetic


@click.command
@click.option("--delta", is_flag=True, help="Add a column of differences to the published numbers.")
@with_settings_or_shipped
def command(paths: Paths, settings: Settings, delta: bool) -> None:
    r"""Write the settings' tables as LaTeX and Markdown: published rows, and those of results/metrics.json apart.

    A .tex file is taken with \input and needs booktabs, graphicx and xcolor; preview.tex is a document of all of them.
    Columns of speed (#OIPs) come from results/throughput.json, where `pipeline throughput` made it; errors on synthetic
    patterns from results/synthetic.json, by `pipeline synthetic`. Tables that are not asked for stay as they are.

    Example: pipeline tables --delta
    """
    measured = read_json(paths.metrics, "evaluate")
    older = results.refuse_edited(paths.metrics, measured, paths.similarity)
    if unknown := results.not_recorded(paths.metrics, older):
        click.echo(unknown, err=True)
    timed = read_json(paths.throughput, "throughput") if paths.throughput.exists() else {}
    learned = synthetic.complete_rows(read_json(paths.synthetic, "synthetic")) if paths.synthetic.exists() else []
    built = {name: tables.build(name, measured, delta, timed, learned) for name in settings.tables}
    with updating(paths.tables, built) as making:
        for name, table in built.items():
            (making / f"{name}.tex").write_text(latex.to_latex(table), encoding="utf-8")
            (making / f"{name}.md").write_text(markdown.to_markdown(table), encoding="utf-8")
        preview = latex.preview(texts(making, tables.TABLES, "tex"))
        (making / "preview.tex").write_text(preview, encoding="utf-8")
    click.echo(f"{paths.tables}: " + ", ".join(f"{name}.tex, {name}.md" for name in built))

"""Write the papers' tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipeline.settings.paths import Paths
from stages.options import with_settings_or_shipped

if TYPE_CHECKING:
    from pipeline.evaluation.retrieval.summary import wrapped
    from pipeline.files.results import read_json, texts, updating
    from pipeline.provenance import results
    from pipeline.report import latex, markdown, tables
    from pipeline.report.fitting import Paper
    from pipeline.report.table import Bold, Rows, TableRequest
    from pipeline.settings import Settings
    from pipeline.studies import synthetic
    from stages import scored_systems


@click.command
@click.option("--delta", is_flag=True, help="Add a column of differences to the published numbers.")
@click.option("--only", type=click.Choice(["published", "measured"]), help="Only these rows.")
@click.option("--columns", metavar="NAMES",
              help="Columns in place of the paper's, metrics of each direction and rsum: r1,rsum.")
@click.option("--bold", type=click.Choice(["tied", "best"]), show_default="typesetting.table_bold",
              help="Of measured rows: all that a paired test over images does not tell from the best, or the best.")
@click.option("--style", type=click.Choice(["booktabs", "plain"]), help="Rules of booktabs, or LaTeX's own.")
@with_settings_or_shipped
def command(paths: Paths, settings: Settings, delta: bool, only: Rows | None, columns: str | None,
            bold: Bold | None, style: latex.Style | None) -> None:
    r"""Write the settings' tables as LaTeX and Markdown: published rows, and those of results/metrics.json apart.

    A .tex file is taken with \input; its first line names the packages that it needs. It fits the widths in the section
    typesetting of params.yaml: one column of the page or both, in type of 9 or 8 points, else 7. One that is wider is
    split by test set, then by direction. What made the numbers stands in comments, and in the .md file. preview.tex
    shows all tables.

    The poolings' #OIPs come from results/throughput.json, where `pipeline throughput` made it; errors on synthetic
    patterns from results/synthetic.json, by `pipeline synthetic`; larger pools and zero-shot retrieval from
    results/recorded.json, by `pipeline evaluate --record`. Tables that are not asked for stay as they are.

    Example: pipeline tables --only measured --columns r1,rsum
    """
    how = settings.typesetting
    request = TableRequest(delta, only or how.table_rows, tuple(filter(
        None, map(str.strip, columns.split(",")))) if columns else tuple(how.table_metrics), bold or how.table_bold)
    measured = scored_systems.metrics(paths) if request.measured else {}
    timed = read_json(paths.throughput, "throughput") if paths.throughput.exists() else {}
    learned = synthetic.complete_rows(read_json(paths.synthetic, "synthetic")) if paths.synthetic.exists() else []
    beyond = results.read_recorded(paths.recorded) if request.measured and paths.recorded.exists() else {}
    built = {name: tables.build(name, measured, request, timed, learned, beyond) for name in settings.tables}
    paper = Paper.of_centimetres(how.column_width, how.text_width, how.text_height, how.text_font)
    shown = {name: table for name, table in built.items() if table.panels}
    with updating(paths.tables, built) as making:
        for name, table in shown.items():
            source = latex.to_latex(table, paper, style or how.table_style)
            (making / f"{name}.tex").write_text(source, encoding="utf-8")
            (making / f"{name}.md").write_text(markdown.to_markdown(table), encoding="utf-8")
        preview = latex.preview(texts(making, tables.TABLES, "tex"), how.text_font)
        (making / "preview.tex").write_text(preview, encoding="utf-8")
    click.echo(wrapped(f"{paths.tables}: " + (", ".join(shown) + ", each as .tex and .md" if shown else
                                              "no table has rows")))
    if empty := [name for name in built if name not in shown]:
        click.echo(wrapped(f"left out, without rows: {', '.join(empty)}"))

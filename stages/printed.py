"""Measured numbers as a command prints them: text, the rows of a paper's table, JSON."""

from __future__ import annotations

import json
import sys

from pipeline.foundation.evaluation.metrics import parse_all
from pipeline.foundation.settings import Settings
from pipeline.judge.tables import evaluated
from stages import terminal


def with_metrics(settings: Settings, names: tuple[str, ...]) -> Settings:
    """The settings with other metrics, if any are named."""
    if not names:
        return settings
    metrics = [str(metric) for metric in parse_all(names)]
    chosen = settings.evaluate.model_copy(update={"metrics": metrics})
    return settings.model_copy(update={"evaluate": chosen})


def print_numbers(
    results: evaluated.Results,
    output: str,
    settings: Settings,
    beside: str | None = None,
    is_table: bool = True,
) -> None:
    """Print results, a list of systems and protocols.

    Args:
        results: The numbers.
        output: A form of `evaluate`'s options, such as "latex".
        settings: Those of typesetting.
        beside: The benchmark whose published rows are printed above them.
        is_table: Whether text is one table of all systems.
    """
    if output == "text" and is_table and not beside:
        text = evaluated.to_table(results, terminal.strong, terminal.width(sys.stdout))
    elif output in ("text", "verbose") and not beside:
        text = evaluated.to_text(results, terminal.strong)
    elif output == "json":
        text = _json(results)
    elif output == "model-index":
        from pipeline.judge.tables import model_index

        text = model_index.to_yaml(results)
    else:
        text = _rows(results, output, settings, beside)
    terminal.echo(text)


def _json(results: evaluated.Results) -> str:
    entries = []
    for _, numbers in results:
        entry = dict(numbers)
        if isinstance(entry.get("series"), evaluated.Series):
            entry["series"] = entry["series"].name
        entries.append(entry)
    return json.dumps(entries, indent=1)


def _rows(results: evaluated.Results, output: str, settings: Settings, beside: str | None) -> str:
    """The rows of a paper's table in LaTeX, Markdown, CSV or text."""
    from pipeline.judge.tables import latex, markdown
    from pipeline.judge.tables.comma_separated import to_csv
    from pipeline.judge.tables.fitting import Paper
    from pipeline.run.report import rows  # and with them the papers' tables

    table = rows.table(results, beside)
    if output == "text":
        return rows.to_text(table, terminal.strong)
    if output == "csv":
        return to_csv(table).rstrip("\n")
    how = settings.typesetting
    paper = Paper(how.column_width, how.text_width, how.text_height)
    if output == "latex":
        return latex.to_latex(table, paper, how.table_style)
    return markdown.to_markdown(table, paper)

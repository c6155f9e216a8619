"""Train GPO's generators on known pooling patterns, and say how near they come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from pipeline.settings.paths import Paths
from pipeline.studies import synthetic
from stages import options
from stages.progress import Progress

if TYPE_CHECKING:

    from pipeline.files.atomic import write_text
    from pipeline.files.results import read_json
    from pipeline.report import published
    from pipeline.settings import Settings

COLUMNS = {"rmse_seen": "seen", "rmse_unseen_smaller": "smaller", "rmse_unseen_larger": "larger"}
GENERATORS = {"/".join(design): design for design in synthetic.DESIGNS}


@click.command
@click.option("--generator", "generators", type=click.Choice(list(GENERATORS)), multiple=True, show_default="all",
              help="Input representation and decoder, as in Table 11; give several for one after another.")
@click.option("--pattern", "patterns", type=click.Choice(list(synthetic.PATTERNS)), multiple=True,
              show_default="all", help="A: average. M-K: the K largest. T-50%: the largest half. L: falling weights.")
@options.with_settings_or_shipped
def command(paths: Paths, settings: Settings, generators: tuple[str, ...], patterns: tuple[str, ...]) -> None:
    """Train GPO's generators on known pooling patterns, as VSE∞ Table 11; write RMSE beside the published numbers.

    Each of the 25 takes a minute or two on one core, and is kept in results/synthetic.json: run again to go on; with
    other settings all are done anew. `pipeline tables` shows a generator whose five patterns are there.

    Example: pipeline synthetic

    Example: pipeline synthetic --generator Cos/Sin/BiGRU --pattern A --pattern L
    """
    done = _kept(paths, settings)
    for generator in generators or GENERATORS:
        for pattern in patterns or synthetic.PATTERNS:
            if (generator, pattern) not in done:
                done[generator, pattern] = _run(settings, generator, pattern)
                _keep(paths, settings, list(done.values()))
    click.echo(_table(list(done.values())))
    click.echo(str(paths.synthetic))


def _run(settings: Settings, generator: str, pattern: str) -> dict[str, Any]:
    chosen, design = settings.synthetic, GENERATORS[generator]
    with Progress(f"{generator} {pattern}", "step", chosen.steps) as bar:
        gpo = synthetic.train(design, pattern, chosen, lambda loss: bar.step(f"loss {loss:.2g}"))
    return synthetic.row(design, pattern, synthetic.errors(gpo, pattern, chosen))


def _kept(paths: Paths, settings: Settings) -> dict[tuple[str, str], dict[str, Any]]:
    """What an earlier run with the same settings found, by generator and pattern."""
    if not paths.synthetic.exists():
        return {}
    found = read_json(paths.synthetic, "synthetic")
    if found.get("settings") != settings.synthetic.model_dump():
        return {}
    return {(f"{row['input_repr']}/{row['decoder']}", row["pattern"]): row for row in found["rows"]}


def _keep(paths: Paths, settings: Settings, rows: list[dict[str, Any]]) -> None:
    write_text(paths.synthetic, json.dumps({"settings": settings.synthetic.model_dump(), "rows": rows}, indent=1))


def _table(rows: list[dict[str, Any]]) -> str:
    """Each found error beside the published one."""
    printed = {(row["input_repr"], row["decoder"], row["pattern"]): row for row in published.load("vse_infty_table11")}
    lines = [f"{'RMSE, here (published)':32}" + "".join(f"{shown:>18}" for shown in COLUMNS.values())]
    for row in rows:
        paper = printed.get((row["input_repr"], row["decoder"], row["pattern"]))
        cells = [f"{row[column]:.3f} ({float(paper[column]):.3f})" if paper else f"{row[column]:.3f}        "
                 for column in COLUMNS]
        name = f"{row['input_repr']}/{row['decoder']}  {row['pattern']}"
        lines.append(f"{name:32}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join(lines)

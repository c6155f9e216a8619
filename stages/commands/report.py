"""The command line of `stages.report`."""

from typing import Any

import click

from stages import options


@click.command
@options.images(in_store=False)
@options.with_settings
@options.of_dataset
def report_command(**given: Any) -> None:
    """Write results/report.html: results with intervals, curves, what members add, queries,
    failures, provenance.

    The page is one file that opens from disk, without network. Parts that are not made yet say so.
    results/curves/ has the run's curves, for `dvc plots show`.

    Example: pipeline report -S report.queries=200
    """
    from stages.report import write_report

    write_report(**given)

"""The command line of `stages.report`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from stages import declared, options


@dataclass(frozen=True, kw_only=True)
class ReportOptions(declared.Options):
    """Write results/report.html: results with intervals, curves, what members add, queries,
    failures, provenance.

    The page is one file that opens from disk, without network. Parts that are not made yet say so.
    results/curves/ has the run's curves, for `dvc plots show`.

    Example: pipeline report -S report.queries=200
    """

    images: Annotated[Path | None, options.images(in_store=False)] = None


report_command = declared.command(
    ReportOptions, "report.write_report", declared.with_settings, options.of_dataset
)

"""The options of `pipeline noise`."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import click

from stages import declared, measuring, options

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.retrieval import Protocol, Ties
    from pipeline.judge.systems.scores.judged import Columns, Truth


@dataclass(frozen=True, kw_only=True)
class NoiseOptions(declared.Options):
    """Measure how far repeated runs of one system differ: the same model and data, computed twice
    or more with another batch size, kernel, dtype, engine or seed.

    Each RUN is a file of scores or a system's name, as for `pipeline compare`; RUN,RUN and patterns
    work, too. Printed are how far each number spreads, what two runs of this system may differ by
    without being different, and how many queries' ranks move. `pipeline compare RUN,RUN OTHER` says
    which differences of two systems are less than this noise.

    Example: pipeline noise batch1.npy batch8.npy batch32.npy

    Example: pipeline noise "runs/*.npy" --latex
    """

    runs: Annotated[
        tuple[str, ...],
        click.argument(
            "runs",
            nargs=-1,
            required=True,
            metavar="RUN RUN [RUN ...]",
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
    output: Annotated[
        str,
        measuring.printed(
            markdown="Markdown",
            latex="tables in LaTeX",
            json="JSON, an object for each pool",
        ),
    ] = "text"


noise_command = declared.command(
    NoiseOptions, "pipeline.extensions.noise.stage:noise", declared.with_settings_or_shipped
)

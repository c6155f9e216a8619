"""The options of `pipeline noise`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from pipeline.foundation.parts.errors import InputError
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

    --make computes the runs of a pretrained encoder: batches of 1, 8 and 32, float32 and bfloat16,
    and attention by torch's fused kernel and in steps, each changed alone. It reads the --images
    and --captions, or those of the --manifest. Of a trained head of the run it computes the same
    from the stored features; other attention only where its text encoder is BERT or the like.

    Example: pipeline noise batch1.npy batch8.npy batch32.npy

    Example: pipeline noise --make clip:FOLDER --images photos --captions captions.csv

    Example: pipeline noise --make vse2ad-region-bigru-s0
    """

    runs: Annotated[
        tuple[str, ...],
        click.argument(
            "runs",
            nargs=-1,
            metavar="[RUN RUN ...]",
            shell_complete=options.names("scored"),
        ),
    ] = ()
    make: Annotated[
        str | None,
        click.option(
            "--make",
            metavar="KIND:PLACE|HEAD",
            help="Compute the runs of this encoder, such as clip:FOLDER, or trained head, and measure them.",
        ),
    ] = None
    out: Annotated[
        Path | None,
        click.option(
            "--out",
            type=options.OutputPath(dir_okay=True, file_okay=False),
            show_default="results/noise",
            help="The folder of the runs that --make computes.",
        ),
    ] = None
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

    def check(self) -> None:
        if self.make and self.runs:
            raise InputError("--make computes the runs; name them, or give --make")
        if self.out and not self.make:
            raise InputError("--out is where --make writes its runs; give --make")
        if not self.make and not self.runs:
            raise InputError("name two or more RUNs of one system, or --make KIND:PLACE or a head")


noise_command = declared.command(
    NoiseOptions, "pipeline.extensions.noise.stage:noise", declared.with_settings_or_shipped
)

"""The command line of `stages.trace`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from pipeline.foundation.parts.errors import InputError
from stages import declared, options


@dataclass(frozen=True, kw_only=True)
class TraceOptions(declared.Options):
    """Follow RESULT back to the photographs that it rests on.

    RESULT is a system's name, a file of results with a SYSTEM in it, or a store. A name means the
    system's entry in results/metrics.json, else in results/recorded.json, else its store. A store
    holds similarities, or embeddings by `pipeline embed`.

    Every recorded digest is compared with the current files, and values that can be computed again
    are computed again. What differs is printed; -v prints each comparison. With --image or
    --caption, only that query's photograph and the shards with its features are read; without, all
    of them. The exit code is 2 unless all match.

    Example: pipeline trace vse2ad-RGP-bigru-s0 --caption 2410
    """

    result: Annotated[Path, click.argument("result", type=options.FilePath())]
    name: Annotated[
        str | None,
        click.argument(
            "name", metavar="[SYSTEM]", required=False, shell_complete=options.names("scored")
        ),
    ] = None
    image: Annotated[
        int | None,
        click.option(
            "--image",
            type=int,
            metavar="ID",
            help="Read the shards and the photograph of this image alone.",
        ),
    ] = None
    caption: Annotated[
        int | None,
        click.option(
            "--caption", type=int, metavar="ID", help="The same for the image of this caption."
        ),
    ] = None
    embed: Annotated[
        int | None,
        click.option(
            "--embed",
            type=click.IntRange(min=0),
            metavar="IMAGES",
            help="How many images of each head are embedded again with their captions, chosen at random each time; 0 "
            "for none.  [default: 32; 0 without torch]",
        ),
    ] = None
    as_verbose: Annotated[
        bool, declared.flag("-v", "--verbose", help="Print each digest and whether it matches.")
    ] = False
    as_json: Annotated[bool, options.as_json] = False

    def check(self) -> None:
        if self.as_verbose and self.as_json:
            raise InputError("--verbose and --json are two ways to print; give one")


trace_command = declared.command(
    TraceOptions, "trace.trace_result", declared.with_settings_or_shipped
)

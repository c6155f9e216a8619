"""The command line of `stages.trace`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from stages import declared, options


@dataclass(frozen=True, kw_only=True)
class TraceOptions(declared.Options):
    """Follow RESULT (results/metrics.json with a SYSTEM in it, or a store) back to its photographs.

    A store holds similarities, or embeddings by `pipeline embed`.

    Every recorded digest is compared with the current files, and values that can be computed again
    are computed again. With --image or --caption, only that query's photograph and the shards with
    its features are read; without, all of them. The exit code is 2 unless all match.

    Example: pipeline trace results/metrics.json vse2ad-RGP-bigru-s0 --caption 2410
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
    as_json: Annotated[bool, options.as_json] = False


trace_command = declared.command(
    TraceOptions, "trace.trace_result", declared.with_settings_or_shipped
)

"""The options of `pipeline audit`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from stages import declared, options


@dataclass(frozen=True, kw_only=True)
class AuditOptions(declared.Options):
    """Find images and captions that data sets A and B share, or the splits of A alone.

    A data set is named as its manifest; NAME:SPLIT is one split of it. One photograph is found by
    Flickr's or COCO's number in the file's name, and by the file's contents. Pairs that look alike
    are shown side by side, for you to judge; so are images of one number that look different. Equal
    captions are counted.

    Exit code 1: A and B share photographs, or two splits of A do. 0: they do not. 2: something
    could not be read or written.

    Example: pipeline audit flickr8k:test multi30k:train
    """

    one: Annotated[str, click.argument("one", metavar="A", shell_complete=options.names("dataset"))]
    other: Annotated[
        str | None,
        click.argument(
            "other", metavar="[B]", required=False, shell_complete=options.names("dataset")
        ),
    ] = None
    alike: Annotated[
        int,
        click.option(
            "--alike",
            type=click.IntRange(0, 128),
            show_default=True,
            metavar="BITS",
            help="Images look alike if their dHashes differ in at most this many of 256 bits.",
        ),
    ] = 16
    out: Annotated[
        Path | None,
        options.out(
            "results/audit-A-B.html",
            "The report; a .json file of the same name is written beside it.",
            endings=(".html",),
        ),
    ] = None


audit_command = declared.command(
    AuditOptions, "pipeline.extensions.audit.stage:audit", declared.with_settings_or_shipped
)

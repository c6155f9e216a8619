"""The command line of `stages.search`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from stages import declared, options
from stages.arguments import Source


@dataclass(frozen=True, kw_only=True)
class SearchOptions(declared.Options):
    """Find the images or captions nearest to TEXT or an image: a table, and a page of thumbnails.
    The search is exact.

    Example: pipeline search "a red house by the sea"

    Example: pipeline search --image photo.jpg --find images

    Example: pipeline search --queries texts.txt
    """

    text: Annotated[str | None, click.argument("text", required=False)] = None
    image: Annotated[
        Path | None,
        click.option(
            "--image",
            type=options.FilePath(dir_okay=False),
            help="Search with this image instead of a text.",
        ),
    ] = None
    file: Annotated[
        Path | None,
        click.option(
            "--queries",
            type=options.FilePath(dir_okay=False),
            metavar="FILE",
            help="Search with every line of this text file, in one pass over the vectors.",
        ),
    ] = None
    find: Annotated[
        str | None,
        click.option(
            "--find",
            type=click.Choice(["images", "captions"]),
            help="Whether to find images or captions.",
            show_default="images for a text, captions for an image",
        ),
    ] = None
    source: Annotated[
        Source | None,
        options.source(
            "What is searched: a scored head or dual encoder by its name, or a store of embeddings, made by "
            "`pipeline embed`.",
            "embedded",
            show_default="the run's first head",
        ),
    ] = None
    dataset: Annotated[str | None, options.dataset] = None
    top: Annotated[
        int,
        click.option(
            "--top", type=click.IntRange(min=1), show_default=True, help="How many to find."
        ),
    ] = 10
    index: Annotated[
        str,
        click.option(
            "--index",
            show_default=True,
            metavar="INDEX",
            help="How the nearest vectors are found: exact, by comparing all, or by an index of another package.",
        ),
    ] = "exact"
    out: Annotated[
        Path | None,
        options.out("results/search.html", "Where to write the page.", endings=(".html",)),
    ] = None


search_command = declared.command(SearchOptions, "search.search", declared.with_settings_or_shipped)

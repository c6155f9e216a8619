"""The command line of `stages.search`."""

from typing import Any

import click

from stages import options


@click.command
@click.argument("text", required=False)
@click.option(
    "--image",
    type=options.FilePath(dir_okay=False),
    help="Search with this image instead of a text.",
)
@click.option(
    "--queries",
    "file",
    type=options.FilePath(dir_okay=False),
    metavar="FILE",
    help="Search with every line of this text file, in one pass over the vectors.",
)
@click.option(
    "--find",
    type=click.Choice(["images", "captions"]),
    help="What to search.",
    show_default="images for a text, captions for an image",
)
@options.source(
    "What is searched: a scored head or dual encoder by its name, or a store of embeddings, made by "
    "`pipeline embed`.",
    "embedded",
    show_default="the run's first head",
)
@options.dataset
@click.option(
    "--top", type=click.IntRange(min=1), default=10, show_default=True, help="How many to find."
)
@click.option(
    "--index",
    default="exact",
    show_default=True,
    metavar="INDEX",
    help="What finds the nearest vectors: exact, or another package's index.",
)
@options.out("results/search.html", "The page.", endings=(".html",))
@options.with_settings_or_shipped
def search_command(**given: Any) -> None:
    """Find the images or captions nearest to TEXT or an image: a table, and a page of thumbnails.
    The search is exact.

    Example: pipeline search "a red house by the sea"

    Example: pipeline search --image photo.jpg --find images

    Example: pipeline search --queries texts.txt
    """
    from stages.search import search

    search(**given)

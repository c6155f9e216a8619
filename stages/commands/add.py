"""The command line of `stages.add`."""

from dataclasses import dataclass
from typing import Annotated, Literal

import click

from stages import declared, options


@dataclass(frozen=True, kw_only=True)
class AddOptions(declared.Options):
    """Make the system NAME of scores or vectors that were computed elsewhere.

    It is then measured, fused, rescored, reranked, compared and traced like the run's systems, and
    has rows in its tables and on its page. Its images and captions are those of the data set's
    manifest: by their ids where the file has ids, else in the manifest's order. Its record holds
    the file's digest; a trace ends there. Running again with the same file does nothing.

    Example: pipeline add ours --scores ours.npy --dataset flickr30k --title "Ours"
    """

    name: Annotated[str, click.argument("name")]
    scores: Annotated[
        str | None,
        click.option(
            "--scores",
            metavar="FILE",
            help="Similarities, one row an image and one column a caption, in any form that `evaluate` takes.",
        ),
    ] = None
    embeddings: Annotated[
        tuple[str, str] | None,
        click.option(
            "--embeddings",
            nargs=2,
            metavar="IMAGES CAPTIONS",
            help="Vectors instead, whose inner products are the scores: one row an image, one row a caption.",
        ),
    ] = None
    normalise: Annotated[
        bool,
        declared.flag(
            "--normalise",
            help="Divide each vector of --embeddings by its length, so that inner products are cosines.",
        ),
    ] = False
    distance: Annotated[
        bool,
        declared.flag("--distance", help="--scores holds distances: the smallest is best."),
    ] = False
    dataset: Annotated[str | None, options.dataset] = None
    split: Annotated[
        str | None,
        click.option(
            "--split",
            metavar="NAME",
            show_default="score.split",
            help="The split that the scores are of.",
        ),
    ] = None
    title: Annotated[
        str | None,
        click.option(
            "--title", metavar="TEXT", show_default="NAME", help="What tables and pages call it."
        ),
    ] = None
    if_changed: Annotated[Literal["refuse", "redo"], options.if_changed] = "refuse"

    def check(self) -> None:
        if not self.embeddings:
            declared.refuse(
                "normalise", why="is for --embeddings; a matrix holds similarities already"
            )
        elif self.distance:
            declared.refuse(
                "distance", why="is for --scores; inner products of --embeddings are similarities"
            )


add_command = declared.command(AddOptions, "add.add", declared.with_settings_or_shipped)

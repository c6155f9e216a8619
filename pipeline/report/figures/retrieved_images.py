"""VSE+2AD figure 4 (b): the images that captions retrieve."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from pipeline.report.examples import Example, Gallery, examples, how_chosen
from pipeline.report.figures.drawing import PAGE, Drawing, Lacking, blank, columns, printable
from pipeline.report.figures.evidence import Evidence, not_the_papers
from pipeline.report.figures.thumbnails import place, show, write

EACH, SHOWN, LETTERS = 2, 5, 25


def draw(evidence: Evidence) -> Drawing:
    """Two successes and two failures, a row each: the caption, its five first images, the right one marked.

    Raises Lacking without a scored system and its photographs.
    """
    gallery = evidence.gallery
    if isinstance(gallery, str):
        raise Lacking(gallery)
    successes, failures = examples(gallery, "t2i", EACH, SHOWN)
    if not (chosen := [*successes, *failures]):
        raise Lacking(f"a query with its ground truth first, or not among the first {SHOWN}: score a larger split")
    figure = blank(PAGE, 1.0 * len(chosen))
    rows = figure.subplots(len(chosen), 2 + SHOWN, squeeze=False, width_ratios=[1.6, *[1] * (1 + SHOWN)])
    for axes, example in zip(rows, chosen, strict=True):
        _row(axes, gallery, example)
    caption = (f"Top-{SHOWN} image retrieval of {gallery.system} on {evidence.title}, {len(gallery.files):,} images, "
               f"after Figure 4 of VSE+2AD. The ground truth has a tick and a solid frame; where it is not among the "
               f"first {SHOWN} it stands apart with its rank. {how_chosen('t2i', successes, failures, SHOWN)}"
               f"{not_the_papers(gallery.members)}")
    table = [{"caption": gallery.captions[example.query], "ground_truth_rank": example.rank, "place": number,
              "file": gallery.files[image], "right": image == gallery.caption_image[example.query]}
             for example in chosen for number, image in enumerate(example.shown, start=1)]
    return Drawing(figure, caption, pd.DataFrame(table), wide=True)


def _row(axes: Sequence[Axes], gallery: Gallery, example: Example) -> None:
    text, *photographs = axes
    text.axis("off")
    caption = printable(gallery.captions[example.query])
    lines = textwrap.wrap(caption, LETTERS * len(caption) // columns(caption), max_lines=6, placeholder=" …")
    write(text, 0, 0.5, "\n".join(lines))
    right = int(gallery.caption_image[example.query])
    for photograph, image in zip(photographs, example.shown, strict=False):
        show(photograph, partial(gallery.open, image), image == right)
    for photograph in photographs[len(example.shown):]:
        photograph.axis("off")
    if right not in example.shown:
        photographs[-1].axis("on")
        show(photographs[-1], partial(gallery.open, right), True)
        photographs[-1].set_title(place(example.rank), fontsize=7, pad=2)

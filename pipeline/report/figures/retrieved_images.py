"""VSE+2AD figure 4 (b): the images that captions retrieve."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from pipeline.report.examples import Example, Gallery, examples, how_chosen
from pipeline.report.figures.drawing import PAGE_WIDTH, Drawing, MissingInputs, empty_figure, printable, text_width
from pipeline.report.figures.figure_inputs import FigureInputs, stand_in_sentence
from pipeline.report.figures.photographs import draw_photograph, rank_text, write

EACH, SHOWN, LETTERS = 2, 5, 25


def draw(inputs: FigureInputs) -> Drawing:
    """Two successes and two failures, a row each: the caption and its first five images, the relevant one marked.

    Args:
        inputs: Heads, scores and timings, as far as they exist.

    Returns:
        The figure, its caption and its numbers.

    Raises:
        MissingInputs: If no system is scored, its photographs are missing, or no query succeeds or fails.

    Source: VSE+2AD, Figure 4 (b).
    """
    gallery = inputs.gallery
    if isinstance(gallery, str):
        raise MissingInputs(gallery)
    successes, failures = examples(gallery, "t2i", EACH, SHOWN)
    if not (chosen := [*successes, *failures]):
        raise MissingInputs(f"a query with its ground truth first, or not among the first {SHOWN}: score a larger "
                            "split")
    figure = empty_figure(PAGE_WIDTH, 1.0 * len(chosen))
    rows = figure.subplots(len(chosen), 2 + SHOWN, squeeze=False, width_ratios=[1.6, *[1] * (1 + SHOWN)])
    for axes, example in zip(rows, chosen, strict=True):
        _row(axes, gallery, example)
    caption = (f"Top-{SHOWN} image retrieval of {gallery.title} on {inputs.title}, {len(gallery.files):,} images, "
               f"after Figure 4 of VSE+2AD. The ground truth has a tick and a solid frame; where it is not among the "
               f"first {SHOWN} it stands apart with its rank. {how_chosen('t2i', successes, failures, SHOWN)}"
               f"{stand_in_sentence(gallery.members)}")
    table = [{"caption": gallery.captions[example.query], "ground_truth_rank": example.rank, "place": number,
              "file": gallery.files[image], "right": image in gallery.relevant("t2i", example.query)}
             for example in chosen for number, image in enumerate(example.shown, start=1)]
    return Drawing(figure, caption, pd.DataFrame(table), wide=True)


def _row(axes: Sequence[Axes], gallery: Gallery, example: Example) -> None:
    text, *photographs = axes
    text.axis("off")
    caption = printable(gallery.captions[example.query])
    lines = textwrap.wrap(caption, LETTERS * len(caption) // text_width(caption), max_lines=6, placeholder=" …")
    write(text, 0, 0.5, "\n".join(lines))
    right = gallery.relevant("t2i", example.query)
    for photograph, image in zip(photographs, example.shown, strict=False):
        draw_photograph(photograph, partial(gallery.open, image), image in right)
    for photograph in photographs[len(example.shown):]:
        photograph.axis("off")
    if example.best not in example.shown:
        photographs[-1].axis("on")
        draw_photograph(photographs[-1], partial(gallery.open, example.best), True)
        photographs[-1].set_title(rank_text(example.rank), fontsize=7, pad=2)

"""VSE+2AD figure 4 (a): the captions that images retrieve."""

from __future__ import annotations

from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from pipeline.report.examples import Example, Gallery, examples, how_chosen
from pipeline.report.figures.drawing import (
    GREEN,
    GREY,
    ORANGE,
    PAGE_WIDTH,
    Drawing,
    MissingInputs,
    empty_figure,
    printable,
    shorten,
)
from pipeline.report.figures.figure_inputs import FigureInputs, stand_in_sentence
from pipeline.report.figures.photographs import draw_photograph, rank_text, tick_or_cross, write

EACH, SHOWN, LETTERS = 2, 5, 95


def draw(inputs: FigureInputs) -> Drawing:
    """Two successes and two failures, a row each: the image and its first five captions, its own marked.

    Args:
        inputs: Heads, scores and timings, as far as they exist.

    Returns:
        The figure, its caption and its numbers.

    Raises:
        MissingInputs: If no system is scored, its photographs are missing, or no query succeeds or fails.

    Source: VSE+2AD, Figure 4 (a).
    """
    gallery = inputs.gallery
    if isinstance(gallery, str):
        raise MissingInputs(gallery)
    successes, failures = examples(gallery, "i2t", EACH, SHOWN)
    if not (chosen := [*successes, *failures]):
        raise MissingInputs(f"a query with its ground truth first, or not among the first {SHOWN}: score a larger "
                            "split")
    figure = empty_figure(PAGE_WIDTH, 1.05 * len(chosen))
    rows = figure.subplots(len(chosen), 2, squeeze=False, width_ratios=[1, PAGE_WIDTH - 1])
    for (photograph, text), example in zip(rows, chosen, strict=True):
        _row(photograph, text, gallery, example)
    right = "Right captions" if gallery.relevance else "The image's own captions"
    caption = (f"Top-{SHOWN} caption retrieval of {gallery.title} on {inputs.title}, {len(gallery.captions):,} "
               f"captions, after Figure 4 of VSE+2AD. {right} have a tick and are bold. "
               f"{how_chosen('i2t', successes, failures, SHOWN)}{stand_in_sentence(gallery.members)}")
    table = [{"file": gallery.files[example.query], "ground_truth_rank": example.rank, "place": number,
              "caption": gallery.captions[caption_], "right": caption_ in gallery.relevant("i2t", example.query)}
             for example in chosen for number, caption_ in enumerate(example.shown, start=1)]
    return Drawing(figure, caption, pd.DataFrame(table), wide=True)


def _row(photograph: Axes, text: Axes, gallery: Gallery, example: Example) -> None:
    draw_photograph(photograph, partial(gallery.open, example.query), None)
    relevant = gallery.relevant("i2t", example.query)
    missed = example.best not in example.shown
    text.set(xlim=(0, 1), ylim=(SHOWN + missed, 0))
    text.axis("off")
    for number, caption in enumerate(example.shown):
        right = caption in relevant
        weight = "bold" if right else "normal"
        write(text, 0, number + 0.5, tick_or_cross(right), color=GREEN if right else ORANGE, fontsize=9,
              fontweight=weight)
        write(text, 0.03, number + 0.5, shorten(printable(gallery.captions[caption]), LETTERS), fontweight=weight)
    if missed:
        write(text, 0.03, SHOWN + 0.5, f"the best of its own has {rank_text(example.rank)}", color=GREY, fontsize=7)

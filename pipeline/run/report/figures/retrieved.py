"""VSE+2AD's figure 4: the captions that images retrieve (a) and the images that captions retrieve
(b).
"""

import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from PIL import Image, ImageOps

from pipeline.foundation.evaluation.retrieval import Direction
from pipeline.foundation.files.images import ImageError
from pipeline.judge.figures import drawing
from pipeline.judge.figures.drawing import GREEN, GREY, ORANGE, PAGE_WIDTH, Drawing
from pipeline.run.report.examples import Example, Gallery, examples, how_chosen
from pipeline.run.report.figures.inputs import FigureInputs, MissingInputs

PIXELS = 150  # of a thumbnail's side: some 160 an inch in print
COLOURS = 256  # a PDF keeps an image of so many at a byte a pixel


# Whether a candidate is relevant, or None for a query -> colour, dash and width of its frame.
FRAMES: dict[bool | None, tuple[str, Any, float]] = {
    True: (GREEN, "-", 2.2),
    False: (ORANGE, (0, (3, 2)), 1.4),
    None: (GREY, "-", 0.5),
}


def draw_photograph(axes: Axes, opened: Callable[[], Image.Image], right: bool | None) -> None:
    """Draw one framed photograph, or the reason why it cannot be read."""
    axes.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1), aspect="equal")
    try:
        photograph = opened().convert("RGB")
    except ImageError as error:
        reason = "\n".join(textwrap.wrap(drawing.printable(f"not shown: {error}"), 14))
        write(axes, 0.5, 0.5, reason, ha="center", fontsize=5, color=GREY)
    else:
        size = (PIXELS, PIXELS)
        square = ImageOps.pad(photograph, size, Image.Resampling.LANCZOS, color="white")
        few = square.quantize(COLOURS, dither=Image.Dither.NONE).convert("RGB")
        # Clipping is off because an SVG names a clip after its exact position, whose last bits vary
        # between machines.
        axes.imshow(np.asarray(few), extent=(0, 1, 0, 1), interpolation="none", clip_on=False)
    colour, dash, width = FRAMES[right]
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=width, color=colour, linestyle=dash, capstyle="butt")
    if right is not None:
        box = {
            "boxstyle": "round,pad=0.15",
            "facecolor": colour,
            "edgecolor": "white",
            "linewidth": 0.5,
        }
        axes.text(
            0.94,
            0.06,
            tick_or_cross(right),
            color="white",
            ha="right",
            va="bottom",
            fontsize=7,
            fontweight="bold",
            bbox=box,
        )


def write(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write plain text; dollar signs in a caption begin no formula."""
    style = {"va": "center", "fontsize": 7.5, **style}
    axes.text(x, y, text, parse_math=False, **style)


def tick_or_cross(right: bool) -> str:
    """The mark of a candidate that is relevant, or is not."""
    return "✓" if right else "✗"


def rank_text(rank: float) -> str:
    """A rank in words: "rank 7", or "rank 7.5 on average over ties"."""
    if rank == int(rank):
        return f"rank {rank:.0f}"
    return f"rank {rank:.1f} on average over ties"


EACH = 2
SHOWN = 5
CAPTION_LETTERS = 25


def _chosen(
    inputs: FigureInputs, direction: Direction
) -> tuple[Gallery, list[Example], list[Example]]:
    """The photographs, and the successes and failures that a figure shows."""
    gallery = inputs.gallery
    if isinstance(gallery, str):
        raise MissingInputs(gallery)
    successes, failures = examples(gallery, direction, EACH, SHOWN)
    if not (successes or failures):
        raise MissingInputs(
            f"a query with its ground truth first, or not among the first {SHOWN}: score more images"
        )
    return gallery, successes, failures


def draw_images(inputs: FigureInputs) -> Drawing:
    """Two successes and two failures, a row each: the caption and its first five images, the
    relevant one marked.

    Source: VSE+2AD, Figure 4 (b).
    """
    gallery, successes, failures = _chosen(inputs, "t2i")
    chosen = [*successes, *failures]
    photographs = 1 + SHOWN
    figure, rows = drawing.subplots(
        PAGE_WIDTH,
        1.0 * len(chosen),
        len(chosen),
        1 + photographs,
        squeeze=False,
        width_ratios=[1.6, *[1] * photographs],
    )
    csv_rows = []
    for axes, example in zip(rows, chosen, strict=True):
        _images_row(axes, gallery, example)
        right = gallery.relevant("t2i", example.query)
        for place, image in enumerate(example.shown, start=1):
            csv_row = {
                "caption": gallery.captions[example.query],
                "ground_truth_rank": example.rank,
                "place": place,
                "file": gallery.files[image],
                "right": image in right,
            }
            csv_rows.append(csv_row)
    caption = inputs.caption(
        "retrieved_images",
        shown=SHOWN,
        system=gallery.title,
        count=len(gallery.files),
        chosen=how_chosen("t2i", successes, failures, SHOWN),
    )
    return Drawing(figure, caption, pd.DataFrame(csv_rows), members=gallery.members, wide=True)


def _images_row(axes: Sequence[Axes], gallery: Gallery, example: Example) -> None:
    text, *photographs = axes
    text.axis("off")
    caption = drawing.printable(gallery.captions[example.query])
    letters = CAPTION_LETTERS * len(caption) // drawing.text_width(caption)
    lines = textwrap.wrap(caption, letters, max_lines=6, placeholder=" …")
    write(text, 0, 0.5, "\n".join(lines))
    right = gallery.relevant("t2i", example.query)
    for photograph, image in zip(photographs, example.shown, strict=False):
        draw_photograph(photograph, partial(gallery.open, image), image in right)
    for photograph in photographs[len(example.shown) :]:
        photograph.axis("off")
    if example.best not in example.shown:
        photographs[-1].axis("on")
        draw_photograph(photographs[-1], partial(gallery.open, example.best), True)
        photographs[-1].set_title(rank_text(example.rank), fontsize=7, pad=2)


LETTERS = 95
CAPTION_LINES = 2
LINE = 0.17  # inches


def draw_captions(inputs: FigureInputs) -> Drawing:
    """Two successes and two failures, a row each: the image and its first five captions, its own
    marked.

    Source: VSE+2AD, Figure 4 (a).
    """
    gallery, successes, failures = _chosen(inputs, "i2t")
    chosen = [*successes, *failures]
    caption_lines = []
    csv_rows = []
    for example in chosen:
        relevant = gallery.relevant("i2t", example.query)
        captions = [gallery.captions[number] for number in example.shown]
        lines = [_lines(caption) for caption in captions]
        caption_lines.append(lines)
        for place, (number, caption) in enumerate(zip(example.shown, captions, strict=True), 1):
            csv_row = {
                "file": gallery.files[example.query],
                "ground_truth_rank": example.rank,
                "place": place,
                "caption": caption,
                "right": number in relevant,
            }
            csv_rows.append(csv_row)
    heights = [max(1.05, LINE * (1 + sum(map(len, lines)))) for lines in caption_lines]
    figure, rows = drawing.subplots(
        PAGE_WIDTH,
        sum(heights),
        len(chosen),
        2,
        squeeze=False,
        width_ratios=[1, PAGE_WIDTH - 1],
        height_ratios=heights,
    )
    for (photograph, text), example, lines in zip(rows, chosen, caption_lines, strict=True):
        _captions_row(photograph, text, gallery, example, lines)
    is_judged = gallery.pool.relevance is not None
    caption = inputs.caption(
        "retrieved_captions",
        shown=SHOWN,
        system=gallery.title,
        count=len(gallery.captions),
        right="Right captions" if is_judged else "The image's own captions",
        chosen=how_chosen("i2t", successes, failures, SHOWN),
    )
    return Drawing(figure, caption, pd.DataFrame(csv_rows), members=gallery.members, wide=True)


def _lines(caption: str) -> list[str]:
    return drawing.wrapped(drawing.printable(caption), LETTERS, CAPTION_LINES)


def _captions_row(
    photograph: Axes, text: Axes, gallery: Gallery, example: Example, lines: list[list[str]]
) -> None:
    draw_photograph(photograph, partial(gallery.open, example.query), None)
    relevant = gallery.relevant("i2t", example.query)
    missed = example.best not in example.shown
    height = sum(map(len, lines)) + SHOWN - len(lines) + missed
    text.set(xlim=(0, 1), ylim=(height, 0))
    text.axis("off")
    top = 0.0
    for caption, shown in zip(example.shown, lines, strict=True):
        right = caption in relevant
        middle = top + len(shown) / 2
        weight = "bold" if right else "normal"
        colour = GREEN if right else ORANGE
        mark = tick_or_cross(right)
        write(text, 0, middle, mark, color=colour, fontsize=9, fontweight=weight)
        write(text, 0.03, middle, "\n".join(shown), fontweight=weight)
        top += len(shown)
    if missed:
        sentence = f"the best of its own has {rank_text(example.rank)}"
        write(text, 0.03, top + 0.5, sentence, color=GREY, fontsize=7)

"""Photographs and marks in figures of retrieved images and captions."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from PIL import Image, ImageOps

from pipeline.files.images import ImageError
from pipeline.report.figures.drawing import GREEN, GREY, ORANGE, printable

PIXELS = 150  # of a thumbnail's side: some 160 an inch in print
COLOURS = 256  # a PDF keeps an image of so many at a byte a pixel


def draw_photograph(axes: Axes, opened: Callable[[], Image.Image], right: bool | None) -> None:
    """Draw one framed photograph, or the reason why it cannot be read.

    Args:
        axes: Where it is drawn; it fills them.
        opened: Returns the photograph, or raises ImageError.
        right: True for a solid green frame with a tick, False for a dashed orange one with a cross, None for a plain
            frame.
    """
    axes.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1), aspect="equal")
    try:
        # Clipping is off because an SVG names a clip after its exact position, whose last bits vary between machines.
        axes.imshow(_square(opened()), extent=(0, 1, 0, 1), interpolation="none", clip_on=False)
    except ImageError as error:
        write(axes, 0.5, 0.5, "\n".join(textwrap.wrap(printable(f"not shown: {error}"), 14)), ha="center", fontsize=5,
              color=GREY)
    colour, dash, width = {True: (GREEN, "-", 2.2), False: (ORANGE, (0, (3, 2)), 1.4), None: (GREY, "-", 0.5)}[right]
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=width, color=colour, linestyle=dash, capstyle="butt")
    if right is not None:
        axes.text(0.94, 0.06, tick_or_cross(right), color="white", ha="right", va="bottom", fontsize=7,
                  fontweight="bold",
                  bbox={"boxstyle": "round,pad=0.15", "facecolor": colour, "edgecolor": "white", "linewidth": 0.5})


def write(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write plain text; dollar signs in a caption begin no formula.

    Args:
        axes: Where it is written.
        x: Horizontal position, in data coordinates.
        y: Vertical position, in data coordinates.
        text: The text.
        **style: Options of matplotlib's `Axes.text`.
    """
    axes.text(x, y, text, parse_math=False, **{"va": "center", "fontsize": 7.5, **style})


def tick_or_cross(right: bool) -> str:
    """The mark of a candidate.

    Args:
        right: Whether it is relevant.

    Returns:
        A tick or a cross.
    """
    return "✓" if right else "✗"


def _square(image: Image.Image) -> np.ndarray:
    """The whole photograph on a white square of few colours, uint8 [PIXELS, PIXELS, 3]."""
    square = ImageOps.pad(image.convert("RGB"), (PIXELS, PIXELS), Image.Resampling.LANCZOS, color="white")
    return np.asarray(square.quantize(COLOURS, dither=Image.Dither.NONE).convert("RGB"))


def rank_text(rank: float) -> str:
    """A rank in words.

    Args:
        rank: From 1, the expectation over ties.

    Returns:
        For example "rank 7", or "rank 7.5 on average over ties".
    """
    return f"rank {rank:.0f}" if rank == int(rank) else f"rank {rank:.1f} on average over ties"

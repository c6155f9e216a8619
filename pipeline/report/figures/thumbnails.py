"""Photographs and marks in a figure of retrievals."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from PIL import Image, ImageOps

from pipeline.files.images import ImageError
from pipeline.report.figures.drawing import GREEN, GREY, ORANGE, printable

PIXELS = 240  # of a thumbnail's side: some 300 an inch as printed


def show(axes: Axes, opened: Callable[[], Image.Image], right: bool | None) -> None:
    """One photograph, framed: solid green with a tick if right, dashed orange with a cross if not; None: plain."""
    axes.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1), aspect="equal")
    try:
        # Not clipped, as it fills its axes: in an SVG a clip is named after its place, to the last bit, which varies.
        axes.imshow(_square(opened()), extent=(0, 1, 0, 1), interpolation="lanczos", clip_on=False)
    except ImageError as error:
        write(axes, 0.5, 0.5, "\n".join(textwrap.wrap(printable(f"not shown: {error}"), 14)), ha="center", fontsize=5,
              color=GREY)
    colour, dash, width = {True: (GREEN, "-", 2.2), False: (ORANGE, (0, (3, 2)), 1.4), None: (GREY, "-", 0.5)}[right]
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=width, color=colour, linestyle=dash, capstyle="butt")
    if right is not None:
        axes.text(0.94, 0.06, mark(right), color="white", ha="right", va="bottom", fontsize=7, fontweight="bold",
                  bbox={"boxstyle": "round,pad=0.15", "facecolor": colour, "edgecolor": "white", "linewidth": 0.5})


def write(axes: Axes, x: float, y: float, text: str, **look: Any) -> None:
    """Text as it is: a caption's dollar signs are no formula."""
    axes.text(x, y, text, parse_math=False, **{"va": "center", "fontsize": 7.5, **look})


def mark(right: bool) -> str:
    return "✓" if right else "✗"


def _square(image: Image.Image) -> np.ndarray:
    """The whole photograph on a white square, uint8 [PIXELS, PIXELS, 3]."""
    return np.asarray(ImageOps.pad(image, (PIXELS, PIXELS), Image.Resampling.LANCZOS, color="white"))


def place(rank: float) -> str:
    """A rank in words: 7, or 7.5 where ties leave it open."""
    return f"rank {rank:.0f}" if rank == int(rank) else f"rank {rank:.1f} on average over ties"

"""What all figures share: their look, their sizes, their files.

Made for a printed column: 8-point type, lines that differ in dash and marker as well as in colour, so that they
can be told apart in grey, and colours that can be told apart without red or green (Okabe and Ito, 2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font

COLUMN, PAGE = 3.3, 6.9  # inches: a column and a page of a two-column paper
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#555555"
LINES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "linestyle": "-", "marker": "o"},
    {"color": ORANGE, "linestyle": "--", "marker": "s", "markerfacecolor": "white"},
    {"color": GREEN, "linestyle": "-.", "marker": "^"},
    {"color": PURPLE, "linestyle": ":", "marker": "D", "markerfacecolor": "white"},
)
LOOK: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # it comes with matplotlib, so that every machine draws the same
    "font.size": 8, "axes.labelsize": 8, "axes.titlesize": 8, "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5, "ytick.labelsize": 7.5,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6, "axes.grid": True,
    "grid.color": "#dddddd", "grid.linewidth": 0.5, "axes.axisbelow": True,
    "lines.linewidth": 1.3, "lines.markersize": 3.5, "legend.frameon": False,
    "pdf.fonttype": 42,  # TrueType: conferences refuse Type 3
    "svg.hashsalt": "vse-pipeline",
}


@dataclass(frozen=True)
class Drawing:
    """A figure, what it shows in words, and the numbers that it is drawn from.

    wide: it spans both columns of a page.
    """

    figure: Figure
    caption: str
    numbers: pd.DataFrame
    wide: bool = False


class Lacking(Exception):
    """A figure's inputs are not there; the message says which, and how to make them."""


@contextmanager
def look() -> Iterator[None]:
    """Everything drawn and saved inside has the papers' look."""
    with mpl.rc_context(LOOK):
        yield


def blank(width: float, height: float) -> Figure:
    """An empty figure of a size in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def save(drawing: Drawing, folder: Path, name: str) -> None:
    """Write NAME.pdf, .svg, .png (300 dots an inch) and .csv (its numbers); the same drawing gives the same bytes."""
    dateless: dict[str, dict[str, Any]] = {
        "pdf": {"CreationDate": None, "Title": name}, "svg": {"Date": None, "Title": name}, "png": {"Title": name}}
    with look():
        for kind, metadata in dateless.items():
            drawing.figure.savefig(folder / f"{name}.{kind}", dpi=300, metadata=metadata)
    drawing.numbers.to_csv(folder / f"{name}.csv", index=False)


def printable(text: str) -> str:
    """`text` on one line, a replacement character for whatever the font cannot show."""
    known = get_font(findfont(LOOK["font.family"])).get_charmap()
    return "".join(letter if ord(letter) in known else "�" for letter in " ".join(text.split()))

"""What all figures share: their look, their sizes, their files.

Made for a printed column: 8-point type, lines that differ in dash and marker as well as in colour, so that they
can be told apart in grey, and colours that can be told apart without red or green (Okabe and Ito, 2008).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, fontManager, get_font
from matplotlib.text import Text

COLUMN, PAGE = 3.3, 6.9  # inches: a column and a page of a two-column paper
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#555555"
LINES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "linestyle": "-", "marker": "o"},
    {"color": ORANGE, "linestyle": "--", "marker": "s", "markerfacecolor": "white"},
    {"color": GREEN, "linestyle": "-.", "marker": "^"},
    {"color": PURPLE, "linestyle": ":", "marker": "D", "markerfacecolor": "white"},
)
LOOK: dict[Any, Any] = {
    "font.size": 8, "axes.labelsize": 8, "axes.titlesize": 8, "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5, "ytick.labelsize": 7.5,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6, "axes.grid": True,
    "grid.color": "#dddddd", "grid.linewidth": 0.5, "axes.axisbelow": True,
    "lines.linewidth": 1.3, "lines.markersize": 3.5, "legend.frameon": False,
    "pdf.fonttype": 42,  # TrueType: conferences refuse Type 3
    "svg.hashsalt": "vse-pipeline",
}
FONT = "DejaVu Sans"
"""It comes with matplotlib, so that every machine draws the same, but for letters that only the next ones have."""
FURTHER_FONTS = (
    "STIXGeneral", "Noto Sans", "Noto Sans Devanagari", "Noto Sans Bengali", "Noto Sans Tamil", "Noto Sans Telugu",
    "Noto Sans Thai", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback", "Arial Unicode MS",
    "Microsoft YaHei", "Malgun Gothic", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR",
)
"""Those of them that are installed; the last have outlines for which some PDF readers print a warning."""
UNSHOWN = "�"
REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""Bidirectional classes of controls: one can turn all that follows it in a figure around."""


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
    with mpl.rc_context({**LOOK, "font.family": fonts()}):
        yield


def legend_above(axes: Axes) -> None:
    """One row above the plot, where no line can run through it."""
    entries = len(axes.get_legend_handles_labels()[1])
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncol=entries, columnspacing=1.2, handletextpad=0.5,
                borderaxespad=0.2)


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


@cache
def fonts() -> list[str]:
    """The first has most letters; each of the others is asked for what those before it lack."""
    installed = set(fontManager.get_font_names())
    return [FONT, *(name for name in FURTHER_FONTS if name in installed)]


@cache
def _letters() -> frozenset[int]:
    """The code points that can be drawn."""
    return frozenset(code for name in fonts() for code in get_font(findfont(name)).get_charmap())


def printable(text: str) -> str:
    """`text` on one line, `UNSHOWN` for what no font has and for controls that reorder; "(empty)" for none."""
    shown = (letter if ord(letter) in _letters() and unicodedata.bidirectional(letter) not in REORDERING else UNSHOWN
             for letter in " ".join(text.split()))
    return "".join(shown) or "(empty)"


def count_unshown(drawing: Drawing) -> Drawing:
    """With a sentence in its caption, if there are any, on how many characters could not be drawn."""
    lost = sum(text.get_text().count(UNSHOWN) for text in drawing.figure.findobj(Text))
    said = f" {lost} character{'s' * (lost > 1)} of the texts could not be drawn: no font here has a sign for them."
    return replace(drawing, caption=drawing.caption + said) if lost else drawing


def columns(text: str) -> int:
    """How wide `text` is, in letters; Chinese, Japanese and Korean ones count two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def cut(text: str, most: int) -> str:
    """`text`, or so much of it as is `most` letters wide with the dots; between words, if it has words."""
    if columns(text) <= most:
        return text
    kept = text[:most]
    while columns(kept) > most - 2:
        kept = kept[:-1]
    words = kept.rpartition(" ")[0]
    return (words if 2 * len(words) >= len(kept) else kept).rstrip() + " …"

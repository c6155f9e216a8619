"""What all figures share: style, sizes, fonts, files.

Figures are made for a printed column: 8-point type; lines that differ in dash and marker as well as
in colour, so that they differ in grey too; colours that differ for the colour-blind (Okabe and Ito,
2008).
"""

import io
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, findSystemFonts, fontManager, get_font
from matplotlib.text import Text

from pipeline.foundation.files.atomic import write_bytes, write_text
from pipeline.foundation.parts.errors import InputWarning, counted
from pipeline.foundation.parts.wrapping import cell
from pipeline.judge.systems.scores.made import Member

COLUMN_WIDTH = 3.3  # inches: a column of a two-column paper
PAGE_WIDTH = 6.9  # inches: both columns
LEGEND_CHARACTERS = 54  # in a row of a legend above a plot of a column's width
LINE_CHARACTERS = 12  # as wide as the line before a legend's label
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
GREY = "#555555"
LINES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "linestyle": "-", "marker": "o"},
    {"color": ORANGE, "linestyle": "--", "marker": "s"},
    {"color": GREEN, "linestyle": "-.", "marker": "^"},
    {"color": PURPLE, "linestyle": ":", "marker": "D"},
)
# The same lines of published numbers, whose markers are hollow, as on the report page.
PUBLISHED: tuple[dict[str, Any], ...] = tuple(
    {**line, "markerfacecolor": "white"} for line in LINES
)
# Of more systems than `LINES` has.
MORE_LINES: tuple[dict[str, Any], ...] = (
    *LINES,
    {"color": "#56B4E9", "linestyle": "-", "marker": "v"},
    {"color": "#E69F00", "linestyle": "--", "marker": "P"},
    {"color": "black", "linestyle": "-.", "marker": "X"},
    {"color": GREY, "linestyle": ":", "marker": "p"},
)
# Ending of a picture's file -> the dates that it must not hold.
PICTURES: dict[str, dict[str, None]] = {
    ".pdf": {"CreationDate": None},
    ".svg": {"Date": None},
    ".png": {},
}
STYLE = Path(__file__).with_name("paper.mplstyle")
# They come with matplotlib, so that figures are the same on every machine. STIXGeneral goes with
# Times.
FONTS = {"sans": "DejaVu Sans", "serif": "STIXGeneral"}
Font = Literal["sans", "serif"]
NOTO_SCRIPTS = (
    "Devanagari",
    "Bengali",
    "Gujarati",
    "Gurmukhi",
    "Oriya",
    "Tamil",
    "Telugu",
    "Kannada",
    "Malayalam",
    "Sinhala",
    "Thai",
    "Lao",
    "Khmer",
    "Myanmar",
    "Ethiopic",
    "Arabic",
    "Hebrew",
    "Georgian",
    "Armenian",
)
# Fonts for letters that the first one lacks, in the order in which they are tried, if they are
# installed. Some PDF readers warn about the last ones.
FURTHER_FONTS = (
    "DejaVu Sans",
    "STIXGeneral",
    "Noto Sans",
    *(f"Noto Sans {script}" for script in NOTO_SCRIPTS),
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "Arial Unicode MS",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans CJK KR",
)
# Script -> the Debian package of a font that has it, where that is not fonts-noto-core.
PACKAGES = dict.fromkeys(
    ("CJK", "Hiragana", "Katakana", "Katakana-hiragana", "Hangul", "Bopomofo"), "fonts-noto-cjk"
)
REPLACEMENT = "�"
# Bidirectional classes of control characters that reverse the text after them.
REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@dataclass(frozen=True)
class Drawing:
    """A figure with its caption and numbers."""

    figure: Figure  # the figure
    caption: str  # what it shows, plain text, without what `finished` adds
    numbers: pd.DataFrame  # the numbers that it is drawn from
    wide: bool = False  # whether it spans both columns of a page
    members: Iterable[Member] = ()  # the heads behind it


@contextmanager
def paper_style(font: Font = "sans") -> Iterator[None]:
    """Draw and save in the style of the papers."""
    with mpl.rc_context({"font.family": fonts(font)}, STYLE):
        yield


def legend_above(axes: Axes) -> None:
    """Put the legend above the plot, where no line crosses it: in one row, or in several if that is
    too wide.
    """
    labels = axes.get_legend_handles_labels()[1]
    width = sum(len(label) + LINE_CHARACTERS for label in labels)
    columns = 2 if len(labels) > 2 else 1
    if width <= LEGEND_CHARACTERS:
        columns = len(labels)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        ncol=columns,
        columnspacing=1.2,
        handletextpad=0.5,
        borderaxespad=0.2,
    )


def lines(count: int) -> list[dict[str, Any]]:
    """So many kinds of lines; those after the eighth have another kind of dash."""
    kinds = []
    for number in range(count):
        kind = dict(MORE_LINES[number % len(MORE_LINES)])
        if number >= len(MORE_LINES):
            kind["linestyle"] = (0, (5, 1, 1, 1, 1, 1))
        kinds.append(kind)
    return kinds


def plot_mean(
    axes: Axes, values: Mapping[int, Sequence[float]], label: str, line: Mapping[str, Any]
) -> None:
    """Draw the mean over seeds at each x, and a band from the lowest to the highest where there are
    several seeds.
    """
    x_values = list(values)
    of_seeds = list(values.values())
    means = [sum(numbers) / len(numbers) for numbers in of_seeds]
    axes.plot(x_values, means, label=label, **line)
    if max(map(len, of_seeds)) > 1:
        lowest = list(map(min, of_seeds))
        highest = list(map(max, of_seeds))
        axes.fill_between(x_values, lowest, highest, color=line["color"], alpha=0.2, linewidth=0)


def seeds_sentence(most: int) -> str:
    """A sentence for a caption on the lines of `plot_mean`, beginning with a space; most: the seeds
    of a line.
    """
    if most > 1:
        return f" Lines: mean over up to {most} seeds; bands: lowest to highest."
    return " One seed."


def subplots(width: float, height: float, *shape: int, **how: Any) -> tuple[Figure, Any]:
    """An empty figure with constrained layout, of so many inches, and its axes: one, or an array of
    this shape.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(*shape, **how)


def save(drawing: Drawing, folder: Path, name: str, font: Font = "sans") -> None:
    """Write a drawing as name.pdf, .svg, .png (300 dots an inch) and .csv (its numbers) into a
    folder, with its font.

    The same drawing gives the same bytes.
    """
    for ending in PICTURES:
        write(drawing, folder / f"{name}{ending}", font)
    write_numbers(drawing, folder / f"{name}.csv")


def write(drawing: Drawing, file: Path, font: Font = "sans") -> None:
    """Write a drawing as a file of one of `PICTURES`, by its ending, with its font."""
    ending = file.suffix.lower()
    metadata = {"Title": file.stem, **PICTURES[ending]}
    # On a full disk, matplotlib's own files end in errors that hide the disk's.
    content = io.BytesIO()
    with paper_style(font):
        drawing.figure.savefig(content, format=ending[1:], dpi=300, metadata=metadata)
    write_bytes(file, content.getvalue(), durable=False)


def write_numbers(drawing: Drawing, file: Path) -> None:
    """Write the numbers of a drawing as CSV."""
    numbers = drawing.numbers.rename(columns=cell).map(cell).to_csv(index=False)
    write_text(file, numbers, durable=False)


@cache
def fonts(first: Font = "sans") -> list[str]:
    """The installed fonts; each is asked for the letters that those before it lack."""
    # matplotlib keeps its list when fonts are installed.
    listed_font_files = {font.fname for font in fontManager.ttflist}
    for file in findSystemFonts():
        if file not in listed_font_files and Path(file).name.startswith(("Noto", "wqy", "Droid")):
            with suppress(OSError, RuntimeError):  # it cannot read every font
                fontManager.addfont(file)
    installed = set(fontManager.get_font_names())
    font_names = [FONTS[first]]
    for further_font in FURTHER_FONTS:
        if further_font in installed and further_font != FONTS[first]:
            font_names.append(further_font)
    return font_names


@cache
def _letters() -> frozenset[int]:
    """The code points that can be drawn."""
    codes: set[int] = set()
    for name in fonts():
        codes.update(get_font(findfont(name)).get_charmap())
    return frozenset(codes)


def printable(text: str) -> str:
    """A text as one line, with `REPLACEMENT` for controls, of which some reorder a text; or
    "(empty)".
    """
    printable_letters = []
    for letter in " ".join(text.split()):
        is_control = unicodedata.category(letter) == "Cc"
        if is_control or unicodedata.bidirectional(letter) in REORDERING:
            letter = REPLACEMENT
        printable_letters.append(letter)
    return "".join(printable_letters) or "(empty)"


def drawable(text: str) -> str:
    """A text with `REPLACEMENT` for letters that no font has."""
    drawable_letters = []
    for letter in text:
        drawable_letters.append(letter if _is_drawable(letter) else REPLACEMENT)
    return "".join(drawable_letters)


def _is_drawable(letter: str) -> bool:
    return ord(letter) in _letters() or letter.isspace()


def _scripts(letters: Iterable[str]) -> list[str]:
    """The scripts of letters, by the first word of their Unicode names: "Devanagari", "CJK"."""
    script_names = set()
    for letter in letters:
        if unicodedata.category(letter)[0] in "LM":
            script_names.add(unicodedata.name(letter, "").partition(" ")[0])
    script_names -= {"", "COMBINING", "VARIATION", "ZERO"}
    return sorted(script if script == "CJK" else script.capitalize() for script in script_names)


def finished(drawing: Drawing) -> Drawing:
    """Say in the caption how many characters of a figure could not be drawn."""
    missing: set[str] = set()
    lost = 0
    for text in drawing.figure.findobj(Text):
        of_text = {letter for letter in text.get_text() if not _is_drawable(letter)}
        if of_text:
            missing |= of_text
            text.set_text(drawable(text.get_text()))
        lost += text.get_text().count(REPLACEMENT)
    if not lost:
        return drawing
    scripts = _scripts(missing)
    which = ""
    if scripts:
        which = f", {', '.join(scripts)},"
        packages = {PACKAGES.get(script, "fonts-noto-core") for script in scripts}
        warnings.warn(
            f"figures show captions in {', '.join(scripts)} as boxes; install a font that has them "
            f"(Debian: {' '.join(sorted(packages))})",
            InputWarning,
            stacklevel=2,
        )
    lost_letters = (
        f" {counted(lost, 'character')} of the texts{which} could not be drawn: no font here has a "
        "sign for them."
    )
    return replace(drawing, caption=drawing.caption + lost_letters)


def text_width(text: str) -> int:
    """The width of a text in letters; Chinese, Japanese and Korean ones count two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def wrapped(text: str, most: int, lines: int) -> list[str]:
    """A text in at most so many lines of at most this width; what does not fit is left out, with
    dots.
    """
    text_rows: list[str] = []
    while len(text_rows) < lines - 1 and text_width(text) > most:
        shortened = text[:most]
        while text_width(shortened) > most:
            shortened = shortened[:-1]
        row = _whole_words(text[: len(shortened) + 1], shortened)
        text_rows.append(row)
        text = text[len(row) :].lstrip()
    return [*text_rows, shorten(text, most)]


def _whole_words(text: str, otherwise: str) -> str:
    """A text without its last word, if at least half of the other one is left; else the other."""
    words = text.rpartition(" ")[0]
    return words if 2 * len(words) >= len(otherwise) else otherwise


def shorten(text: str, most: int) -> str:
    """Shorten a text to a width, see `text_width`: between words if possible, with dots."""
    if text_width(text) <= most:
        return text
    shortened = text[:most]
    while text_width(shortened) > most - 2:
        shortened = shortened[:-1]
    return f"{_whole_words(shortened, shortened).rstrip()} …"

"""The inputs of figures, and what all figures share: style, sizes, fonts, files.

Figures are made for a printed column: 8-point type; lines that differ in dash and marker as well as
in colour, so that they differ in grey too; colours that differ for the colour-blind (Okabe and Ito,
2008).
"""

import io
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
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
from pipeline.foundation.files.parsing import from_yaml
from pipeline.foundation.parts.errors import InputWarning, counted
from pipeline.foundation.parts.wrapping import cell
from pipeline.judge.systems.scores.made import Member
from pipeline.run.provenance.heads import TrainedHead
from pipeline.run.report import names
from pipeline.run.report.examples import Gallery
from pipeline.run.report.measured import MeasuredSystem

COLUMN_WIDTH = 3.3  # inches: a column of a two-column paper
PAGE_WIDTH = 6.9  # inches: both columns
LEGEND_CHARACTERS = 54  # in a row of a legend above a plot of a column's width
LINE_CHARACTERS = 8  # as wide as the line before a legend's label
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
GREY = "#555555"
LINES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "linestyle": "-", "marker": "o"},
    {"color": ORANGE, "linestyle": "--", "marker": "s", "markerfacecolor": "white"},
    {"color": GREEN, "linestyle": "-.", "marker": "^"},
    {"color": PURPLE, "linestyle": ":", "marker": "D", "markerfacecolor": "white"},
)
CAPTIONS: dict[str, str] = from_yaml(
    Path(__file__).with_name("captions.yaml").read_text(encoding="utf-8")
)
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


class MissingInputs(Exception):
    """A figure's inputs are missing; the message says which, and how to make them."""


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
    dateless: dict[str, dict[str, Any]] = {
        "pdf": {"CreationDate": None, "Title": name},
        "svg": {"Date": None, "Title": name},
        "png": {"Title": name},
    }
    with paper_style(font):
        for kind, metadata in dateless.items():
            # On a full disk, matplotlib's own files end in errors that hide the disk's.
            content = io.BytesIO()
            drawing.figure.savefig(content, format=kind, dpi=300, metadata=metadata)
            write_bytes(folder / f"{name}.{kind}", content.getvalue(), durable=False)
    numbers = drawing.numbers.rename(columns=cell).map(cell).to_csv(index=False)
    write_text(folder / f"{name}.csv", numbers, durable=False)


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
    """Say in the caption which stand-ins are behind a figure, and how many characters could not be
    drawn.
    """
    caption = drawing.caption
    stand_ins = names.stand_ins(drawing.members)
    if stand_ins:
        caption += (
            f" {names.STAND_IN} Not the papers' networks; stand-ins made these features: "
            f"{', '.join(stand_ins)}."
        )
    missing: set[str] = set()
    lost = 0
    for text in drawing.figure.findobj(Text):
        of_text = {letter for letter in text.get_text() if not _is_drawable(letter)}
        if of_text:
            missing |= of_text
            text.set_text(drawable(text.get_text()))
        lost += text.get_text().count(REPLACEMENT)
    if not lost:
        return replace(drawing, caption=caption)
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
    caption += (
        f" {counted(lost, 'character')} of the texts{which} could not be drawn: no font here has a "
        "sign for them."
    )
    return replace(drawing, caption=caption)


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


UNSCORED = "a scored system and its photographs: run `pipeline score` and `pipeline ensemble`"


@dataclass(frozen=True)
class FigureInputs:
    """Everything that figures can be drawn from, as far as it exists."""

    title: str  # The data set's name for readers
    heads: tuple[TrainedHead, ...] = ()  # The finished heads on it
    # Feature -> N, the number of items in its store.
    items: Mapping[str, int] = field(default_factory=dict)
    # The parsed `results/throughput.json`, {} where nothing was timed.
    throughput: Mapping[str, Any] = field(default_factory=dict)
    # A scored system with captions and photographs; or, in words, what is missing for one.
    gallery: Gallery | str = UNSCORED
    # (recipe, text encoder, seed) of the run's systems, in the order of the settings.
    run: Sequence[tuple[str, str, int]] = ()
    # The systems of results/metrics.json on it, by one protocol.
    measured: tuple[MeasuredSystem, ...] = ()
    train_images: int = 0  # How many images its train split has

    def caption(self, figure: str, head: TrainedHead | None = None, **said: Any) -> str:
        """The figure's caption in captions.yaml, its braces filled by `said`; head: the first one
        that is shown.
        """
        if head:
            asked = head.request
            said = {
                "method": names.method(asked.name),
                "encoder": names.encoder(asked.text),
                "feature": asked.feature,
                "seed": asked.seed,
                **said,
            }
        return CAPTIONS[figure].format(title=self.title, **said)

    @property
    def trained(self) -> tuple[TrainedHead, ...]:
        """The heads with a history: those that were trained here."""
        return tuple(head for head in self.heads if head.history)

    def preferred_first(self, heads: Iterable[TrainedHead], plain: str) -> list[TrainedHead]:
        """The heads in order: those of the run, in its order, then those of the paper's plain
        recipe, then others.
        """
        ranks = {system: rank for rank, system in enumerate(self.run)}

        def order(head: TrainedHead) -> tuple[int, bool]:
            return ranks.get(head.run_key, len(ranks)), head.request.name != plain

        return sorted(heads, key=order)

    def preferred_system(self, heads: Iterable[TrainedHead], plain: str) -> list[TrainedHead]:
        """The heads that share recipe, text encoder and seed with the first of `preferred_first`;
        plain: as there.
        """
        chosen = self.preferred_first(heads, plain)
        return [head for head in chosen if head.run_key == chosen[0].run_key]

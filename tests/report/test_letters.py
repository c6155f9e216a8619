"""Texts in figures: one line, as wide as there is room, in whatever script; what cannot be drawn is
counted.
"""

from __future__ import annotations

import io
import warnings

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont
from matplotlib.text import Text

from pipeline.foundation.parts.errors import InputWarning
from pipeline.judge.figures import drawing
from pipeline.judge.figures.drawing import (
    Drawing,
    finished,
    fonts,
    paper_style,
    printable,
    shorten,
    text_width,
    wrapped,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\n", "a b"),
        ("\x07", "�"),
        ("é ∞ ✓", "é ∞ ✓"),
        ("שלום", "שלום"),
        ("a\u202ecba\u2066", "a�cba�"),
        ("", "(empty)"),
        (" \n", "(empty)"),
        ("\u1d81", "\u1d81"),  # DejaVu Sans has no ᶁ, STIX has
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_letters_of_a_further_font_are_drawn_in_it() -> None:
    assert fonts()[:2] == ["DejaVu Sans", "STIXGeneral"]
    with paper_style(), warnings.catch_warnings():
        warnings.simplefilter("error")  # it warns of a letter that no font has
        figure = Figure()
        figure.text(0, 0, "\u1d81")
        figure.canvas.draw()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", "short"),
        ("exactly 10", "exactly 10"),
        ("some words here", "some …"),
        ("x" * 12, "xxxxxxxx …"),
        ("a bcdefghijklmnop", "a bcdefg …"),
        ("中文中文中文", "中文中文 …"),
    ],
)
def test_cut(text: str, shown: str) -> None:
    assert shorten(text, 10) == shown
    assert text_width(shown) <= 10


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", ["short"]),
        ("some words here", ["some words", "here"]),
        ("exactly 10 and", ["exactly 10", "and"]),
        ("elevenchars", ["elevenchar", "s"]),
        ("some words here and more", ["some words", "here …"]),
        ("中文中文中文", ["中文中文中", "文"]),
    ],
)
def test_wrapped_in_two_lines(text: str, shown: list[str]) -> None:
    assert wrapped(text, 10, 2) == shown


def test_a_caption_counts_what_could_not_be_drawn() -> None:
    figure = Figure()
    figure.text(0, 0, printable("\ue000\ue000 b"))
    figure.subplots().set_title(printable("\ue001"))
    shown = finished(Drawing(figure, "A figure.", pd.DataFrame()))
    assert (
        shown.caption
        == "A figure. 3 characters of the texts could not be drawn: no font here has a sign for them."
    )
    assert {text.get_text() for text in figure.findobj(Text)} >= {"�� b", "�"}
    plain = Drawing(Figure(), "A figure.", pd.DataFrame())
    assert finished(plain) == plain


def test_scripts_that_no_font_has_are_named_with_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(drawing, "_letters", lambda: frozenset(map(ord, "a dogכלב")))
    figure = Figure()
    figure.text(0, 0, printable("a dog, कुत्ता 犬コ 🧿 כלב"))
    with pytest.warns(InputWarning) as said:
        shown = finished(Drawing(figure, "A figure.", pd.DataFrame()))
    assert [str(one.message) for one in said] == [
        "figures show captions in CJK, Devanagari, Katakana as boxes; install a font that has them (Debian: "
        "fonts-noto-cjk fonts-noto-core)"
    ]
    assert (
        "10 characters of the texts, CJK, Devanagari, Katakana, could not be drawn" in shown.caption
    )
    assert figure.texts[0].get_text() == "a dog� ������ �� � כלב"


def test_matplotlibs_own_lines_on_fonts_are_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    """Such as "findfont: Font family NAME not found", once for each text."""
    with mpl.rc_context({"font.family": ["No Such Font"]}):
        findfont("Another One That Nobody Has")
        Figure().savefig(io.BytesIO())
    assert caplog.messages == []

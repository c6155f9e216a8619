"""Legends stay within a column, in as few rows as that takes."""

from __future__ import annotations

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from pipeline.judge.figures.drawing import COLUMN_WIDTH, STYLE, legend_above, lines, subplots


def drawn(labels: list[str]) -> Figure:
    """A figure of a line for each label."""
    with mpl.rc_context(fname=STYLE):
        figure, axes = subplots(COLUMN_WIDTH, 2.3)
        for label in labels:
            axes.plot([0, 1], label=label, marker="o")
        legend_above(axes)
        figure.draw_without_rendering()
    return figure


@pytest.mark.parametrize(
    ("labels", "rows"),
    [
        (["region", "grid"], 1),
        (["region", "grid", "patch"], 1),
        (["a" * 15] * 2, 1),
        (["a" * 16] * 2, 2),
        (["a" * 6] * 3, 1),
        (["a" * 9] * 3, 2),
        (["a" * 10] * 4, 2),
        (["region, released"] * 4, 2),
    ],
)
def test_a_legend_stays_within_its_column(labels: list[str], rows: int) -> None:
    figure = drawn(labels)
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    assert len({round(text.get_window_extent().y0) for text in legend.get_texts()}) == rows


def test_a_line_of_the_legend_shows_its_dashes_twice() -> None:
    """The lengths of matplotlib's own dashes, in widths of the line."""
    with mpl.rc_context(fname=STYLE):
        sample = mpl.rcParams["legend.handlelength"] * mpl.rcParams["legend.fontsize"]
        named = {
            "-": [1],
            "--": mpl.rcParams["lines.dashed_pattern"],
            "-.": mpl.rcParams["lines.dashdot_pattern"],
            ":": mpl.rcParams["lines.dotted_pattern"],
        }
        for kind in lines(9):
            pattern = kind["linestyle"]
            dashes = named.get(pattern) or pattern[1]
            assert sample >= 2 * sum(dashes) * mpl.rcParams["lines.linewidth"], pattern

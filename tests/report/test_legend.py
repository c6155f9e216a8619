"""Legends stay within a column, in as few rows as that takes."""

from __future__ import annotations

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from pipeline.judge.figures.drawing import COLUMN_WIDTH, STYLE, legend_above, subplots


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
        (["a" * 19] * 2, 1),
        (["a" * 20] * 2, 2),
        (["a" * 10] * 3, 1),
        (["a" * 13] * 3, 2),
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

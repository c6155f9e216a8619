"""VSE∞ figure 3: how long a text query takes, by the number of images."""

from __future__ import annotations

import pandas as pd

from pipeline.report.figures.drawing import COLUMN_WIDTH, LINES, Drawing, MissingInputs, empty_figure
from pipeline.report.figures.figure_inputs import FigureInputs

SYSTEMS = {"cross_encoder": "cross-encoder (model)", "ensemble": "VSE, ensemble RGP", "head": "VSE, one head"}


def draw(inputs: FigureInputs) -> Drawing:
    """Three lines with both axes logarithmic; the times are those of results/throughput.json.

    Args:
        inputs: Heads, scores and timings, as far as they exist.

    Returns:
        The figure, its caption and its numbers.

    Raises:
        MissingInputs: If nothing was timed.

    Source: VSE∞, Figure 3.
    """
    if not inputs.throughput:
        raise MissingInputs("results/throughput.json: run `pipeline throughput`")
    table = pd.DataFrame(inputs.throughput["pools"])
    figure = empty_figure(COLUMN_WIDTH, 2.3)
    axes = figure.subplots()
    for line, (column, label) in zip(LINES[1::-1] + LINES[2:], SYSTEMS.items(), strict=False):
        axes.plot(table["images"], table[column], label=label, **line)
    axes.set(xscale="log", yscale="log", xlabel="images searched", ylabel="seconds a query")
    axes.legend()
    caption = ("Time of a text query by the number of images, after Figure 3 of VSE∞. "
               + inputs.throughput["methods"]["pools"])
    return Drawing(figure, caption, table)

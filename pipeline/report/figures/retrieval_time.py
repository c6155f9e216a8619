"""VSE∞ figure 3: how long a text query takes, by the number of images."""

from __future__ import annotations

import pandas as pd

from pipeline.report.figures.drawing import COLUMN, LINES, Drawing, Lacking, blank
from pipeline.report.figures.evidence import Evidence

SYSTEMS = {"cross_encoder": "cross-encoder (model)", "ensemble": "VSE, ensemble RGP", "head": "VSE, one head"}


def draw(evidence: Evidence) -> Drawing:
    """Three lines, both axes logarithmic; the times are those of results/throughput.json.

    Raises Lacking where nothing was timed.
    """
    if not evidence.throughput:
        raise Lacking("results/throughput.json: run `pipeline throughput`")
    table = pd.DataFrame(evidence.throughput["pools"])
    figure = blank(COLUMN, 2.3)
    axes = figure.subplots()
    for line, (column, label) in zip(LINES[1::-1] + LINES[2:], SYSTEMS.items(), strict=False):
        axes.plot(table["images"], table[column], label=label, **line)
    axes.set(xscale="log", yscale="log", xlabel="images searched", ylabel="seconds a query")
    axes.legend()
    caption = ("Time of a text query by the number of images, after Figure 3 of VSE∞. "
               + evidence.throughput["methods"]["pools"])
    return Drawing(figure, caption, table)

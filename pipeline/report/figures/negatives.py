"""VSE+2AD figure C-2: how many negatives AdOpt uses in a step."""

from __future__ import annotations

import pandas as pd
from matplotlib.ticker import MaxNLocator

from pipeline.report import names
from pipeline.report.figures.drawing import COLUMN, GREY, LINES, Drawing, Lacking, blank
from pipeline.report.figures.evidence import Evidence


def draw(evidence: Evidence) -> Drawing:
    """One line a feature: K over the epochs, each the mean over the epoch's steps.

    Raises Lacking without a head that was trained with AdOpt.
    """
    heads = [head for head in evidence.trained if "negatives" in head.history[0] and
             head.setting("objective")["name"] == "adopt"]
    if not heads:
        raise Lacking("a head that was trained with the objective adopt: train vse2ad")
    first = heads[0]
    shown = [head for head in heads if (head.recipe, head.text, head.seed) == (first.recipe, first.text, first.seed)]
    figure = blank(COLUMN, 2.2)
    axes = figure.subplots()
    for line, head in zip(LINES, shown, strict=False):
        axes.plot([row["epoch"] + 1 for row in head.history], [row["negatives"] for row in head.history],
                  label=head.feature, **line)
    most = first.description["training"]["batch_size"] - 1
    axes.axhline(most, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.annotate(f"all {most} of the batch", (1, most), xytext=(0, 2), textcoords="offset points", va="bottom",
                  ha="right", xycoords=("axes fraction", "data"), color=GREY, fontsize=7)
    axes.set(xlabel="epochs trained", ylabel="negatives a step, K", ylim=(0, most * 1.15))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="lower left")
    caption = (f"Negatives that AdOpt uses in a step, K of VSE+2AD equation 6, after its Figure C-2: the mean over the "
               f"steps of each epoch, on {evidence.title}. {names.method(first.recipe)}, "
               f"{names.encoder(first.text)}, seed {first.seed}."
               + evidence.stand_ins(head.feature for head in shown))
    rows = [{"head": head.name, "feature": head.feature, "epochs": int(row["epoch"]) + 1, "negatives": row["negatives"]}
            for head in shown for row in head.history]
    return Drawing(figure, caption, pd.DataFrame(rows))

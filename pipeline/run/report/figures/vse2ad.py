"""VSE+2AD's figures of training: A.2-1, RSUM with and without AdOpt; C-2, the number of AdOpt's
negatives.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from pipeline.foundation.settings.parts import ObjectiveSettings
from pipeline.judge.figures import drawing
from pipeline.judge.figures.drawing import GREY, Drawing
from pipeline.judge.tables import published
from pipeline.run.provenance.heads import TrainedHead, one_per_seed
from pipeline.run.report.figures.inputs import FigureInputs, MissingInputs

# Objective -> column of the published curve.
PUBLISHED = {"adopt": "with_adopt", "triplet": "without_adopt"}


def draw_training_curve(inputs: FigureInputs) -> Drawing:
    """One line for each objective: the mean over the seeds, and a band from the lowest to the
    highest.

    Source: VSE+2AD, Figure A.2-1.
    """
    pair = _pair(inputs.preferred_first(inputs.trained, "vse2ad"))
    figure, (axes, printed) = drawing.subplots(drawing.COLUMN_WIDTH, 3.6, 2, 1)
    csv_rows: list[dict[str, object]] = []
    members = []
    for line, (objective, heads) in zip(drawing.LINES, pair.items(), strict=False):
        rsum_of_epochs: dict[int, list[float]] = defaultdict(list)
        for head in heads:
            members.append(head.member)
            for epoch in head.history:
                epochs = int(epoch["epoch"])
                rsum_of_epochs[epochs].append(epoch["RSUM"])
                csv_row = {
                    "objective": objective,
                    "head": head.name,
                    "seed": head.request.seed,
                    "epochs": epochs,
                    "RSUM": epoch["RSUM"],
                }
                csv_rows.append(csv_row)
        drawing.plot_mean(axes, rsum_of_epochs, _label(heads[0]), line)
    axes.set(xlabel="epochs trained", ylabel="RSUM on val")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    drawing.legend_above(axes)
    _plot_published(printed)
    first_head = pair["adopt"][0]
    caption = inputs.caption(
        "training_curve",
        first_head,
        first=_label(first_head),
        second=_label(pair["triplet"][0]),
        seeds=drawing.seeds_sentence(max(map(len, pair.values()))),
    )
    for objective, column in PUBLISHED.items():
        for point in published.training_curve():
            csv_row = {
                "objective": objective,
                "head": "published",
                "epochs": point["epochs"],
                "RSUM": point[column],
            }
            csv_rows.append(csv_row)
    return Drawing(figure, caption, pd.DataFrame(csv_rows), members=members)


def _pair(heads: Sequence[TrainedHead]) -> dict[str, list[TrainedHead]]:
    """Objective -> heads, one for each seed, that differ in nothing else; the first such pair."""
    for anchor in heads:
        key = anchor.settings_key("objective")
        alike = [head for head in heads if head.settings_key("objective") == key]
        objectives: dict[str, Mapping[str, Any]] = {}
        for head in alike:
            objective = head.setting("objective")
            objectives.setdefault(objective["name"], objective)
        if objectives.keys() >= PUBLISHED.keys():
            return {name: _with_objective(alike, objectives[name]) for name in PUBLISHED}
    raise MissingInputs(
        "two heads that differ in their objective alone, adopt and triplet: train vse2ad and "
        "vse2ad-noadopt on one feature"
    )


def _with_objective(
    heads: Sequence[TrainedHead], objective: Mapping[str, Any]
) -> list[TrainedHead]:
    return one_per_seed(head for head in heads if head.setting("objective") == objective)


def _label(head: TrainedHead) -> str:
    """What a line shows. The paper's triplet loss is hard from the first step (Appendix C)."""
    if head.setting("objective")["name"] == "adopt":
        return "with AdOpt"
    epochs = _option(head, "all_negatives_epochs")
    if epochs:
        return f"without AdOpt (hard triplet after epoch {epochs})"
    return "without AdOpt (hard triplet)"


def _plot_published(axes: Axes) -> None:
    """The paper's own points, hollow as all that is published; the epochs between its two panels
    are left open.
    """
    points = pd.DataFrame(published.training_curve()).set_index("epochs").reindex(range(1, 26))
    for line, column in zip(drawing.PUBLISHED, PUBLISHED.values(), strict=False):
        axes.plot(points.index, points[column], **line)  # type: ignore[arg-type]
    axes.set(xlabel="epochs trained", ylabel="RSUM, published", ylim=(300, 430))
    low = points["without_adopt"].min()
    axes.text(
        0.98,
        0.08,
        f"the first four without\nAdOpt are lower, from {low:.1f}",
        transform=axes.transAxes,
        ha="right",
        fontsize=7,
    )


# The running mean is over 1/20 of the steps: smooth at the width of a column, and a fall within an
# epoch shows.
WINDOWS = 20


def draw_negatives(inputs: FigureInputs) -> Drawing:
    """Draw the running mean of K over the training steps, and each step's own K, or that of a few
    steps, faintly.

    One line for each feature, and one for each other reading of K on the first feature.

    Source: VSE+2AD, equation 6 and Figure C-2.
    """
    heads = _chosen(inputs)
    window = _window(heads)
    faint = max(head.steps["averaged"].max() for head in heads)
    figure, axes = drawing.subplots(drawing.COLUMN_WIDTH, 2.3)
    tables = []
    readings = sorted(set(map(_reading, heads)))
    for number, (line, head) in enumerate(zip(drawing.LINES, heads, strict=False)):
        steps = head.steps
        count = steps["averaged"].cumsum()
        negatives = steps["negatives"]
        of_every_step = negatives.repeat(steps["averaged"].tolist())
        means = of_every_step.rolling(window, center=True, min_periods=1).mean()
        mean = means.iloc[count - 1]
        axes.plot(count, negatives, color=line["color"], alpha=0.25, linewidth=0.5, rasterized=True)
        feature = head.request.feature
        label = f"{feature}, {_reading(head)}" if len(readings) > 1 else feature
        apart = max(1, len(steps) // 8)
        marked = (number * apart // len(drawing.LINES), apart)
        axes.plot(count, mean, label=label, markevery=marked, **line)
        columns = {
            "head": head.name,
            "feature": feature,
            "step": count,
            "epoch": steps["epoch"],
            "negatives": negatives,
            "mean": mean,
        }
        tables.append(pd.DataFrame(columns))
    _frame(axes, heads[0].request.training.batch_size - 1)
    caption = inputs.caption(
        "negatives",
        heads[0],
        readings=" and as ".join(readings),
        window=window,
        faint="every step" if faint == 1 else f"means over {faint} steps",
    )
    numbers = pd.concat(tables, ignore_index=True)
    return Drawing(figure, caption, numbers, members=[head.member for head in heads])


def _window(heads: Sequence[TrainedHead]) -> int:
    """The steps of a running mean: 1, 2 or 5 times a power of ten."""
    steps = max(int(head.steps["averaged"].sum()) for head in heads)
    window = 1
    for power in range(9):
        for factor in (1, 2, 5):
            if factor * 10**power <= steps / WINDOWS:
                window = factor * 10**power
    return window


def _chosen(inputs: FigureInputs) -> list[TrainedHead]:
    """Heads of one recipe, text encoder and seed, one for each feature; then the first one's by
    other readings of K.
    """
    adaptive = []
    for head in inputs.trained:
        if head.setting("objective")["name"] == "adopt" and "negatives" in head.steps:
            adaptive.append(head)
    if not adaptive:
        raise MissingInputs("a head that was trained with the objective adopt: train vse2ad")
    system = inputs.preferred_system(adaptive, "vse2ad")
    first = system[0]
    readings: dict[str, TrainedHead] = {}
    for head in adaptive:
        if _differs_in_reading(head, first):
            readings.setdefault(_reading(head), head)
    del readings[_reading(first)]
    return [*system, *(head for _, head in sorted(readings.items()))]


def _differs_in_reading(head: TrainedHead, first: TrainedHead) -> bool:
    """Whether a head differs from the first in nothing but its reading of K, if at all."""
    if head.request.seed != first.request.seed:
        return False
    if head.settings_key("objective") != first.settings_key("objective"):
        return False
    objective = {**head.setting("objective"), "count": ""}
    return objective == {**first.setting("objective"), "count": ""}


def _reading(head: TrainedHead) -> str:
    """Which reading of K its objective has: "printed" or "released"."""
    return str(_option(head, "count"))


def _option(head: TrainedHead, name: str) -> Any:
    """An option of a head's objective, its default where the record does not have it."""
    objective = ObjectiveSettings.of(**head.setting("objective"))
    return getattr(objective.completed, name)


def _frame(axes: Axes, most: int) -> None:
    axes.axhline(most, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.annotate(
        f"all {most} of the batch",
        (1, most),
        xytext=(0, 2),
        textcoords="offset points",
        va="bottom",
        ha="right",
        xycoords=("axes fraction", "data"),
        color=GREY,
        fontsize=7,
    )
    axes.set(xlabel="training step", ylabel="negatives, K", ylim=(0, 1.15 * most))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    drawing.legend_above(axes)

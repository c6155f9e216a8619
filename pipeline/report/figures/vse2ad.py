"""VSE+2AD's figures of training: A.2-1, RSUM with and without AdOpt; C-2, the number of AdOpt's
negatives.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from pipeline.heads.objectives.options import AdOptOptions, TripletOptions
from pipeline.provenance.heads import TrainedHead, one_per_seed
from pipeline.report import published
from pipeline.report.figures import drawing
from pipeline.report.figures.drawing import GREY, LINES, Drawing, FigureInputs, MissingInputs

# Objective -> column of the published curve.
PUBLISHED = {"adopt": "with_adopt", "triplet": "without_adopt"}


def draw_training_curve(inputs: FigureInputs) -> Drawing:
    """One line for each objective: the mean over the seeds, and a band from the lowest to the
    highest.

    Source: VSE+2AD, Figure A.2-1.
    """
    pair = _pair(inputs.preferred_first(inputs.trained, "vse2ad"))
    figure, (axes, printed) = drawing.subplots(drawing.COLUMN_WIDTH, 3.6, 2, 1)
    for line, heads in zip(LINES, pair.values(), strict=False):
        values: dict[int, list[float]] = defaultdict(list)
        for row in (row for head in heads for row in head.history):
            values[int(row["epoch"])].append(row["RSUM"])
        drawing.plot_mean(axes, values, _label(heads[0]), line)
    axes.set(xlabel="epochs trained", ylabel="RSUM on val")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    drawing.legend_above(axes)
    _plot_published(printed)
    first = pair["adopt"][0]
    caption = inputs.caption(
        "training_curve",
        first,
        first=_label(first),
        second=_label(pair["triplet"][0]),
        seeds=drawing.seeds_sentence(max(map(len, pair.values()))),
    )
    rows: list[dict[str, object]] = [
        {
            "objective": objective,
            "head": head.name,
            "seed": head.request.seed,
            "epochs": int(row["epoch"]),
            "RSUM": row["RSUM"],
        }
        for objective, heads in pair.items()
        for head in heads
        for row in head.history
    ]
    rows += [
        {
            "objective": objective,
            "head": "published",
            "epochs": point["epochs"],
            "RSUM": point[column],
        }
        for objective, column in PUBLISHED.items()
        for point in published.training_curve()
    ]
    return Drawing(
        figure,
        caption,
        pd.DataFrame(rows),
        members=[head.member for own in pair.values() for head in own],
    )


def _pair(heads: Sequence[TrainedHead]) -> dict[str, list[TrainedHead]]:
    """Objective -> heads, one for each seed, that differ in nothing else; the first such pair."""
    for anchor in heads:
        equal = [
            head
            for head in heads
            if head.settings_key("objective") == anchor.settings_key("objective")
        ]
        by_name = {
            head.setting("objective")["name"]: head.setting("objective") for head in reversed(equal)
        }
        if by_name.keys() >= PUBLISHED.keys():
            return {
                name: one_per_seed(
                    head for head in equal if head.setting("objective") == by_name[name]
                )
                for name in PUBLISHED
            }
    raise MissingInputs(
        "two heads that differ in their objective alone, adopt and triplet: train vse2ad and "
        "vse2ad-noadopt on one feature"
    )


def _label(head: TrainedHead) -> str:
    """What a line shows. The paper's triplet loss is hard from the first step (Appendix C)."""
    if head.setting("objective")["name"] == "adopt":
        return "with AdOpt"
    epochs = TripletOptions(**_options(head)).all_negatives_epochs
    return f"without AdOpt (hard triplet{f' after epoch {epochs}' if epochs else ''})"


def _plot_published(axes: Axes) -> None:
    """The paper's own points; the epochs between its two panels are left open."""
    points = pd.DataFrame(published.training_curve()).set_index("epochs").reindex(range(1, 26))
    for line, column in zip(LINES, PUBLISHED.values(), strict=False):
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
    wanted = max(1, max(int(head.steps["averaged"].sum()) for head in heads) / WINDOWS)
    round_numbers = (factor * 10**power for power in range(9) for factor in (1, 2, 5))
    window = max(number for number in round_numbers if number <= wanted)
    faint = max(head.steps["averaged"].max() for head in heads)
    figure, axes = drawing.subplots(drawing.COLUMN_WIDTH, 2.3)
    rows = []
    readings = sorted(set(map(_reading, heads)))
    several = len(readings) > 1
    for number, (line, head) in enumerate(zip(LINES, heads, strict=False)):
        steps = head.steps
        apart = max(1, len(steps) // 8)
        count = steps["averaged"].cumsum()
        each = steps["negatives"].repeat(steps["averaged"].tolist())
        mean = each.rolling(window, center=True, min_periods=1).mean().iloc[count - 1]
        axes.plot(
            count,
            steps["negatives"],
            color=line["color"],
            alpha=0.25,
            linewidth=0.5,
            rasterized=True,
        )
        label = f"{head.request.feature}, {_reading(head)}" if several else head.request.feature
        axes.plot(count, mean, label=label, markevery=(number * apart // len(LINES), apart), **line)
        rows.append(
            pd.DataFrame(
                {
                    "head": head.name,
                    "feature": head.request.feature,
                    "step": count,
                    "epoch": steps["epoch"],
                    "negatives": steps["negatives"],
                    "mean": mean,
                }
            )
        )
    _frame(axes, heads[0].request.training.batch_size - 1)
    caption = inputs.caption(
        "negatives",
        heads[0],
        readings=" and as ".join(readings),
        window=window,
        faint="every step" if faint == 1 else f"means over {faint} steps",
    )
    return Drawing(
        figure, caption, pd.concat(rows, ignore_index=True), members=[head.member for head in heads]
    )


def _chosen(inputs: FigureInputs) -> list[TrainedHead]:
    """Heads of one recipe, text encoder and seed, one for each feature; then the first one's by
    other readings of K.
    """
    adaptive = [
        head
        for head in inputs.trained
        if head.setting("objective")["name"] == "adopt" and "negatives" in head.steps
    ]
    if not adaptive:
        raise MissingInputs("a head that was trained with the objective adopt: train vse2ad")
    system = inputs.preferred_system(adaptive, "vse2ad")
    first = system[0]
    readings = {
        _reading(head): head
        for head in reversed(adaptive)
        if head.request.seed == first.request.seed
        and head.settings_key("objective") == first.settings_key("objective")
        and {**head.setting("objective"), "count": ""}
        == {**first.setting("objective"), "count": ""}
    }
    return system + [
        head for reading, head in sorted(readings.items()) if reading != _reading(first)
    ]


def _reading(head: TrainedHead) -> str:
    """Which reading of K its objective has: "printed" or "released"."""
    return AdOptOptions(**_options(head)).count


def _options(head: TrainedHead) -> dict[str, Any]:
    return {name: value for name, value in head.setting("objective").items() if name != "name"}


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

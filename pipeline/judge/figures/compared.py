"""The figure of a comparison: recall against K with bands, and the differences as a forest plot."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.lines import Line2D

from pipeline.foundation.evaluation.metrics.base import (
    CONFIDENCE,
    STATISTICS,
    Fold,
    Statistic,
    at,
    joint,
)
from pipeline.foundation.evaluation.metrics.kinds import Hit
from pipeline.foundation.evaluation.metrics.standard import Metrics
from pipeline.foundation.evaluation.retrieval import Direction
from pipeline.foundation.evaluation.statistics import contrast as contrasting, families
from pipeline.foundation.evaluation.statistics.all_pairs import LEVEL
from pipeline.foundation.evaluation.statistics.contrast import Contrast
from pipeline.foundation.evaluation.statistics.wilson import Interval, of_mean_share
from pipeline.foundation.files import regular
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.figures import drawing
from pipeline.judge.figures.drawing import GREY, Drawing
from pipeline.judge.tables import compared

# Recalls are drawn at each of them.
CUTOFFS = range(1, 11)
# More systems than these have pairs that are higher than a page, and lines that look alike.
MOST_SYSTEMS = 12
# The columns of its CSV.
COLUMNS = (
    "shown",
    "split",
    "language",
    "protocol",
    "system",
    "minus",
    "metric",
    "seeds",
    "value",
    "low",
    "high",
    "p",
    "adjusted",
)
HEADING = ",".join(COLUMNS)
# What the CSV holds.
NUMBERS = (
    "A line for each system, direction and K from 1 to 10 (shown: recall), with its 95 % interval over images; "
    "then one for each pair and metric (shown: difference), with its interval, p, and the corrected p (q with --fdr)."
)
# What p is corrected by -> which differences are filled, as the caption says it.
FILLED = {
    families.HOLM: (
        f"significant (p below {LEVEL:g} after Holm's correction for everything that is compared: RSUMs as one "
        "family, all other numbers as another)"
    ),
    families.MAX_T: (
        f"significant (p below {LEVEL:g} after the step-down maxT correction for everything that is compared: "
        "RSUMs as one family, all other numbers as another)"
    ),
    families.FDR: (
        f"found (q below {LEVEL:g} by Benjamini and Yekutieli: RSUMs are one family, all other numbers another)"
    ),
}
# How many rows a forest plot has at most beside recalls in one row; with more, these stand one
# above the other.
ROWS_BESIDE = 10
BAND = 0.16  # opacity of a band
ROW = 0.14  # inches: a row of a forest plot
LEGEND_ROW = 0.155  # inches
LEGEND_LETTERS = 16.2  # of a row of the legend, an inch
ROWS_OF_ONE = 3  # of a legend with one label in a row
# How wide the two panels of recalls and the forest plot are.
WIDTHS = (1, 1, 1.1)
HEIGHTS = (1, 1.2)  # of the recalls, and of a forest plot below them
LEAST_OF_TWO = 64  # letters: the least row of the legend that two long labels share
LEAST_BESIDE = 5.5  # inches: the least width of three panels beside each other
LEAST_WIDTH = 7.0  # cm: the least width of a figure
INCH = 2.54  # cm
# A difference is no system: it has a colour and a marker that none has.
DIFFERENCE: Mapping[str, Any] = {"color": "black", "marker": "d", "markersize": 5}
# Where the forest plot stands: right of both panels of recalls, right of them one above the other,
# or below them.
Layout: TypeAlias = Literal["beside", "stacked", "below"]
# Layout -> where the caption says that the differences are.
DIFFERENCES_AT: Mapping[Layout, str] = {"beside": "Right", "stacked": "Right", "below": "Below"}


@dataclass(frozen=True)
class ComparedPool:
    """Systems on one pool by one protocol."""

    ranked: Sequence[Sequence[Metrics]]  # of each system, one for each seed
    contrasts: Sequence[Contrast]  # of all pairs, in the order of `combinations`


def check(systems: int, files: Sequence[Path], text_width: float) -> None:
    """Refuse, before anything is measured, a figure that cannot be drawn or written. text_width: in
    cm.
    """
    if systems > MOST_SYSTEMS:
        raise InputError(
            f"--figure draws {MOST_SYSTEMS} systems at most, received {systems}; name fewer"
        )
    if text_width < LEAST_WIDTH:
        raise InputError(
            f"typesetting.text_width {text_width:g}: --figure is as wide, and takes at least {LEAST_WIDTH:g} cm"
        )
    for file in files:
        _check_place(file)


def _check_place(file: Path) -> None:
    """Refuse a file without a folder, or with a CSV beside it that holds something else."""
    if not file.absolute().parent.is_dir():
        raise InputError(f"{file}: there is no folder {file.parent}; make it, or choose another")
    numbers = numbers_beside(file)
    if file == numbers or not numbers.exists():
        return
    if not numbers.is_file() or not regular.content(numbers).startswith(HEADING.encode()):
        raise InputError(
            f"{numbers}: exists, and is not the numbers of a figure, which are written beside {file}; choose "
            "another name"
        )


def write(picture: Drawing, file: Path, font: drawing.Font) -> None:
    """Write a figure by the ending of its file, and its numbers beside it, as CSV; or these
    alone.
    """
    numbers = numbers_beside(file)
    if file != numbers:
        drawing.write(picture, file, font)
    drawing.write_numbers(picture, numbers)


def numbers_beside(file: Path) -> Path:
    """The CSV of a figure's numbers, which may be all that is written of it."""
    if file.suffix.lower() == ".csv":
        return file
    return file.with_suffix(".csv")


def draw(
    names: Sequence[str],
    pools: Sequence[ComparedPool],
    text_width: float,
    font: drawing.Font = "sans",
) -> Drawing:
    """Draw systems that were compared, a row of panels for each pool.

    names: what each system is called; text_width: of the paper, in cm, and so wide is the figure.
    """
    with drawing.paper_style(font):
        picture = drawing.finished(_drawn(names, pools, text_width / INCH))
        _settle(picture.figure)
    return picture


def _settle(figure: Figure) -> None:
    """Lay a figure out for good, at rounded places: the solver's last digits differ from call to
    call, and with them the bytes of a file.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position(np.round(axes.get_position().bounds, 4).tolist())


def _drawn(names: Sequence[str], pools: Sequence[ComparedPool], width: float) -> Drawing:
    keyed = [f"{key}  {drawing.printable(name)}" for key, name in compared.keyed(names)]
    letters = int(LEGEND_LETTERS * width)
    columns = _legend_columns(keyed, letters)
    rows = len(STATISTICS) + 1
    if len(names) > 2:
        rows = len(pools[0].contrasts)
    layout, height = _layout(rows, width)
    above = LEGEND_ROW * math.ceil(len(names) / columns)
    heights = [above, *([height] * len(pools))]
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    numbers: list[Mapping[str, Any]] = []
    lines = drawing.lines(len(names))
    opacity = BAND / max(1, len(names) / 4)  # of many systems several bands lie on each other
    handles: list[Line2D] = []
    for place, pool in zip(range(1, len(heights)), pools, strict=True):
        recalls, forest = _panels(figure, grid[place], layout)
        ways = pool.ranked[0][0].directions
        for axes in recalls[len(ways) :]:
            axes.set_axis_off()
        for axes, way in zip(recalls, ways, strict=False):
            axes.set_title(_panel_title(pool, way, len(pools) > 1))
            handles = []
            for runs, line in zip(pool.ranked, lines, strict=True):
                handles.append(_line(axes, way, runs, line, opacity))
        _forest(figure, forest, names, pool)
        numbers += _rows(names, pool)
    legend_axes = figure.add_subplot(grid[0])
    legend_axes.set_axis_off()
    labels = [
        drawing.shorten(label, letters // columns - drawing.LINE_CHARACTERS) for label in keyed
    ]
    legend = legend_axes.legend(
        handles, labels, loc="upper left", ncol=columns, borderaxespad=0, borderpad=0
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    table = pd.DataFrame(numbers, columns=list(COLUMNS)).astype({"seeds": "Int64"})
    return Drawing(figure, _caption(keyed, pools, layout), table, wide=True)


def _legend_columns(labels: Sequence[str], letters: int) -> int:
    """How many labels stand beside each other in a row of the legend of so many letters."""
    widest = max(map(drawing.text_width, labels)) + drawing.LINE_CHARACTERS
    fewest = 1
    if len(labels) > ROWS_OF_ONE and letters >= LEAST_OF_TWO:
        fewest = 2  # and what is longer is shortened
    return min(len(labels), 4, max(fewest, letters // widest))


def _layout(rows: int, width: float) -> tuple[Layout, float]:
    """Where the panels of a pool stand, and how high they are together, in inches. rows: of the
    forest plot.
    """
    if rows > ROWS_BESIDE:
        return "stacked", max(3.6, 0.8 + ROW * rows)
    if width < LEAST_BESIDE:
        return "below", 4.2
    return "beside", 2.1


def _panels(figure: Figure, place: SubplotSpec, layout: Layout) -> tuple[list[Axes], SubplotSpec]:
    """The panels of recalls in both directions, and the place of the forest plot."""
    labelled = [(True, True), (True, False)]
    if layout == "stacked":
        grid = place.subgridspec(2, 2)
        recalls = [figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])]
        labelled = [(False, True), (True, True)]
        forest = grid[:, 1]
    elif layout == "below":
        grid = place.subgridspec(2, 2, height_ratios=HEIGHTS)
        recalls = [figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[0, 1])]
        forest = grid[1, :]
    else:
        grid = place.subgridspec(1, 3, width_ratios=WIDTHS)
        recalls = [figure.add_subplot(grid[0]), figure.add_subplot(grid[1])]
        forest = grid[2]
    for axes, (has_x_label, has_y_label) in zip(recalls, labelled, strict=True):
        axes.set_xticks([1, 5, 10])
        axes.set_xticks(list(CUTOFFS), minor=True)
        if has_x_label:
            axes.set_xlabel("K")
        if has_y_label:
            axes.set_ylabel("recall at K, %")
    return recalls, forest


def _panel_title(pool: ComparedPool, way: Direction, is_one_of_several: bool) -> str:
    """The direction; of several pools also what tells them apart."""
    titles = {"i2t": "image → caption", "t2i": "caption → image"}
    if not is_one_of_several:
        return titles[way]
    contrast = pool.contrasts[0]
    return f"{titles[way]}, {contrast.get('language') or contrast['protocol']}"


def _line(
    axes: Axes, way: Direction, runs: Sequence[Metrics], line: Mapping[str, Any], opacity: float
) -> Line2D:
    """Draw a system's recalls of one direction with their band; the line, for a legend."""
    recalls = [recall(runs, way, k) for k in CUTOFFS]
    lows = [each.low for each in recalls]
    highs = [each.high for each in recalls]
    axes.fill_between(CUTOFFS, lows, highs, color=line["color"], alpha=opacity, linewidth=0)
    values = [each.value for each in recalls]
    (drawn,) = axes.plot(CUTOFFS, values, markevery=[0, 4, 9], **line)
    return drawn


def recall(runs: Sequence[Metrics], way: Direction, k: int) -> Interval:
    """The mean over seeds of a recall in percent, with its 95 % interval over images."""
    hit = Hit(k)
    shares = []
    by_image = []
    for metrics in runs:
        folds = [Fold.of(ranks, metrics.ties) for ranks in metrics.ranks]
        ranked = [fold.ranked(way) for fold in folds]
        values = [hit.values(queries, metrics.ties) for queries in ranked]
        shares.append(hit.number(folds, way, values) / hit.scale)
        by_image.append(joint([(values, [queries.drawn_with for queries in ranked])]))
    share = float(np.mean(shares))
    low, high = of_mean_share(share, np.mean(by_image, axis=0), CONFIDENCE)
    return Interval(hit.scale * share, hit.scale * low, hit.scale * high, CONFIDENCE)


def _forest(figure: Figure, place: SubplotSpec, names: Sequence[str], pool: ComparedPool) -> None:
    """Draw differences with their intervals: of two systems each recall and, on an axis of its own,
    RSUM; of several RSUM of each pair.
    """
    if len(names) > 2:
        rows = {}
        for (key_of_a, key_of_b), contrast in zip(
            combinations(compared.keys(names), 2), pool.contrasts, strict=True
        ):
            rows[f"{key_of_b} − {key_of_a}"] = contrast["RSUM"]
        axes = figure.add_subplot(place)
        _differences(axes, rows)
        axes.set(title="difference of RSUM", xlabel="points")
        return
    (contrast,) = pool.contrasts
    *recalls, rsum = contrasting.compared(contrast)
    grid = place.subgridspec(2, 1, height_ratios=(len(recalls) + 1, 2))
    upper = figure.add_subplot(grid[0])
    _differences(upper, {str(recall): at(contrast, recall) for recall in recalls})
    upper.set_title("B − A")
    lower = figure.add_subplot(grid[1])
    _differences(lower, {str(rsum): at(contrast, rsum)})
    lower.set_xlabel("points")


def _differences(axes: Axes, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw a row for each difference, the first above."""
    axes.axvline(0, color=GREY, linewidth=0.8)
    for place, row in enumerate(rows.values()):
        low, high = row["interval"]
        axes.plot([low, high], [place, place], color=DIFFERENCE["color"], linewidth=1.1)
        face = "white"
        if row["adjusted"] < LEVEL:
            face = DIFFERENCE["color"]
        axes.plot(row["difference"], place, markerfacecolor=face, clip_on=False, **DIFFERENCE)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)


def _rows(names: Sequence[str], pool: ComparedPool) -> Iterator[dict[str, Any]]:
    """The rows of the CSV: each system's recalls, then the differences of each pair."""
    first = pool.contrasts[0]
    of_pool = {key: first.get(key) for key in ("split", "language", "protocol")}
    for name, runs in zip(names, pool.ranked, strict=True):
        for way in runs[0].directions:
            for k in CUTOFFS:
                known = recall(runs, way, k)
                yield {
                    **of_pool,
                    "shown": "recall",
                    "system": name,
                    "metric": str(Statistic(way, f"R@{k}")),
                    "seeds": len(runs),
                    "value": known.value,
                    "low": known.low,
                    "high": known.high,
                }
    for (name_of_a, name_of_b), contrast in zip(
        combinations(names, 2), pool.contrasts, strict=True
    ):
        for statistic in contrasting.compared(contrast):
            row = at(contrast, statistic)
            yield {
                **of_pool,
                "shown": "difference",
                "system": name_of_b,
                "minus": name_of_a,
                "metric": str(statistic),
                "value": row["difference"],
                "low": row["interval"][0],
                "high": row["interval"][1],
                "p": row["p"],
                "adjusted": row["adjusted"],
            }


def _caption(keyed: Sequence[str], pools: Sequence[ComparedPool], layout: Layout) -> str:
    """What the figure shows, in plain text."""
    titles = dict.fromkeys(compared.title(pool.contrasts[0]) for pool in pools)
    bands = "95 % intervals over images"
    if any(len(runs) > 1 for runs in pools[0].ranked):
        bands += ", of the mean over a system's seeds"
    over = {tuple(contrast["over"]) for pool in pools for contrast in pool.contrasts}
    what = {("images",): "images", ("images", "seeds"): "images and seeds"}
    filled = FILLED[contrasting.corrected_by(pools[0].contrasts[0])]
    of_differences = " or over ".join(what[each] for each in sorted(over))
    return (
        f"Recall at K of {'; '.join(keyed)}, on {'; '.join(titles)}. Bands: {bands}. "
        f"{DIFFERENCES_AT[layout]}: differences with 95 % intervals over {of_differences}; filled: {filled}."
    )

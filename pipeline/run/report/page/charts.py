"""Learning curves, and axes, as coordinates; templates draw them as SVG in the page's colours."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from pipeline.run.provenance.heads import TrainedHead
from pipeline.run.report import names

WIDTH = 360
HEIGHT = 220
LEFT = 58
RIGHT = 12
TOP = 12
BOTTOM = 34


@dataclass(frozen=True)
class Line:
    """One head's curve."""

    label: str  # its feature and seed
    kind: str  # its feature, which decides colour, dash and marker
    points: Sequence[tuple[float, float]]  # (x, y) in the drawing's units
    values: Sequence[tuple[int, float]]  # (epochs trained, RSUM on val), one for each point
    best: int  # position of the epoch that was kept


@dataclass(frozen=True)
class Chart:
    """RSUM on val over the epochs, one line for each head of a recipe and text encoder."""

    title: str  # recipe and text encoder
    lines: Sequence[Line]  # the curves
    x_ticks: Sequence[tuple[float, str]]  # (coordinate, label) of epochs on their axis
    y_ticks: Sequence[tuple[float, str]]  # the same of RSUM
    # The size of the drawing in its own units.
    width = WIDTH
    height = HEIGHT
    # The positions of the plot's edges in it.
    left = LEFT
    right = WIDTH - RIGHT
    top = TOP
    bottom = HEIGHT - BOTTOM

    @property
    def kinds(self) -> list[str]:
        """The features in it, for the legend."""
        return list(dict.fromkeys(line.kind for line in self.lines))


@dataclass(frozen=True)
class Axis:
    """An axis, as positions in percent of its length."""

    ticks: Sequence[float]  # round values from one end to the other

    def place(self, value: float | Decimal) -> float:
        """The position of a value."""
        first_tick = self.ticks[0]
        axis_length = self.ticks[-1] - first_tick
        return round(100 * (float(value) - first_tick) / axis_length, 2)


def curves(heads: Sequence[TrainedHead]) -> list[Chart]:
    """A chart for each recipe and text encoder of the heads that were trained here, all on the same
    axes.
    """
    trained = [head for head in heads if head.history]
    sums = []
    heads_of_recipes: dict[tuple[str, str], list[TrainedHead]] = defaultdict(list)
    for head in trained:
        sums += [epoch["RSUM"] for epoch in head.history]
        heads_of_recipes[head.request.name, head.request.text].append(head)
    epochs = max((len(head.history) for head in trained), default=0)
    charts = []
    for (recipe, text), heads_of_recipe in heads_of_recipes.items():
        title = f"{names.method(recipe)}, {names.encoder(text)}"
        charts.append(_chart(title, heads_of_recipe, sums, epochs))
    return charts


def _chart(title: str, heads: Sequence[TrainedHead], sums: Sequence[float], epochs: int) -> Chart:
    y_ticks = ticks(min(sums), max(sums), 5)
    lowest_rsum = min(y_ticks[0], *sums)
    highest_rsum = max(y_ticks[-1], *sums)

    def x(epoch: float) -> float:
        share = (epoch - 1) / max(1, epochs - 1)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(rsum: float) -> float:
        share = (rsum - lowest_rsum) / ((highest_rsum - lowest_rsum) or 1)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    lines = []
    for head in heads:
        rsum_of_epochs = [(number, epoch["RSUM"]) for number, epoch in enumerate(head.history, 1)]
        points = [(x(number), y(rsum)) for number, rsum in rsum_of_epochs]
        # The first epoch of the largest RSUM was kept.
        best = max(range(len(rsum_of_epochs)), key=lambda index: (rsum_of_epochs[index][1], -index))
        feature = head.request.feature
        label = f"{feature}, seed {head.request.seed}"
        lines.append(Line(label, feature, points, rsum_of_epochs, best))
    x_ticks = []
    for tick in ticks(1, epochs, 8):
        if tick == int(tick) and 1 <= tick <= epochs:
            x_ticks.append((x(tick), f"{tick:.0f}"))
    if not x_ticks:
        x_ticks = [(x(1), "1")]
    return Chart(title, lines, x_ticks, [(y(tick), f"{tick:g}") for tick in y_ticks])


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers for an axis over low to high, 1, 2 or 5 times a power of ten apart, at most
    `most` + 1.
    """
    if high <= low:  # an axis needs a length
        middle = low
        low = middle - 1
        high = middle + 1
    rough_step = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough_step))
    step = 10 * power
    for factor in (1, 2, 5):
        if factor * power >= rough_step * (1 - 1e-9):
            step = factor * power
            break
    first_tick = math.floor(low / step)
    last_tick = math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first_tick, last_tick + 1)]

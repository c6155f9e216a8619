"""Learning curves as coordinates; the template draws them as SVG in the page's colours."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.provenance.heads import TrainedHead
from pipeline.report import names

WIDTH, HEIGHT = 360, 220
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 34


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
    # The size of the drawing in its own units, and the positions of the plot's edges in it.
    width, height, left, right, top, bottom = (
        WIDTH,
        HEIGHT,
        LEFT,
        WIDTH - RIGHT,
        TOP,
        HEIGHT - BOTTOM,
    )

    @property
    def kinds(self) -> list[str]:
        """The features in it, for the legend."""
        return [*dict.fromkeys(line.kind for line in self.lines)]


def curves(heads: Sequence[TrainedHead]) -> list[Chart]:
    """A chart for each recipe and text encoder of the heads that were trained here, all on the same
    axes.
    """
    every = [row["RSUM"] for head in heads for row in head.history]
    epochs = max((len(head.history) for head in heads), default=0)
    groups: dict[tuple[str, str], list[TrainedHead]] = {}
    for head in (head for head in heads if head.history):
        groups.setdefault((head.request.name, head.request.text), []).append(head)
    return [
        _chart(f"{names.method(recipe)}, {names.encoder(text)}", members, every, epochs)
        for (recipe, text), members in groups.items()
    ]


def _chart(title: str, heads: Sequence[TrainedHead], every: Sequence[float], epochs: int) -> Chart:
    ys = ticks(min(every), max(every), 5)
    low, high = min(ys[0], *every), max(ys[-1], *every)

    def x(epoch: float) -> float:
        return round(LEFT + (epoch - 1) / max(1, epochs - 1) * (WIDTH - LEFT - RIGHT), 1)

    def y(rsum: float) -> float:
        return round(
            HEIGHT - BOTTOM - (rsum - low) / ((high - low) or 1) * (HEIGHT - TOP - BOTTOM), 1
        )

    lines = []
    for head in heads:
        values = [(number, row["RSUM"]) for number, row in enumerate(head.history, 1)]
        best = max(range(len(values)), key=lambda index: (values[index][1], -index))
        lines.append(
            Line(
                f"{head.request.feature}, seed {head.request.seed}",
                head.request.feature,
                [(x(epoch), y(rsum)) for epoch, rsum in values],
                values,
                best,
            )
        )
    shown = [tick for tick in ticks(1, epochs, 8) if tick == int(tick) and 1 <= tick <= epochs] or [
        1
    ]
    return Chart(
        title,
        lines,
        [(x(epoch), f"{epoch:.0f}") for epoch in shown],
        [(y(tick), f"{tick:g}") for tick in ys],
    )


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers for an axis over low to high, 1, 2 or 5 times a power of ten apart, at most
    `most` + 1.
    """
    if high <= low:  # an axis needs a length
        low, high = low - 1, low + 1
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first = math.floor(low / step)
    return [
        round((first + index) * step, 10)
        for index in range(math.ceil(high / step - 1e-9) - first + 1)
    ]

"""Figure 3 of Geigle et al.: how good systems are by the number of images that they were trained on."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

import pandas as pd

from pipeline.report import names
from pipeline.report.figures.drawing import COLUMN_WIDTH, LINES, Drawing, MissingInputs, empty_figure
from pipeline.report.figures.figure_inputs import FigureInputs, stand_in_sentence
from pipeline.report.measured import MeasuredSystem

OF_SIZE = ("images", "subset_seed")
"""Settings that say which images a head was trained on."""


def draw(inputs: FigureInputs) -> Drawing:
    """One line for each system, the mean over its seeds, and a band from the lowest to the highest.

    Args:
        inputs: Measured systems, and the number of training images.

    Returns:
        The figure, its caption and its numbers.

    Raises:
        MissingInputs: If no system was trained on two numbers of images.

    Source: Geigle et al., Figure 3, whose points are not printed as numbers.
    """
    lines = list(_lines(inputs.measured, inputs.train_images).values())
    if not lines:
        raise MissingInputs("a system that was trained on several numbers of images: a recipe for each, `pipeline "
                            "train -S training.NAME.images=1000`, and `pipeline evaluate`")
    figure = empty_figure(COLUMN_WIDTH, 2.5)
    axes = figure.subplots()
    rows: list[dict[str, object]] = []
    for number, points in enumerate(lines):
        line, sizes = LINES[number % len(LINES)], sorted(points)
        label = names.label(points[sizes[-1]])
        values = [points[size].values["rsum"] for size in sizes]
        axes.plot(sizes, [sum(each) / len(each) for each in values], label=label, **line)
        axes.fill_between(sizes, [min(each) for each in values], [max(each) for each in values], color=line["color"],
                          alpha=0.2, linewidth=0)
        rows += [{"system": name, "label": label, "images": size, "rsum": rsum} for size in sizes
                 for name, rsum in zip(points[size].systems, points[size].values["rsum"], strict=True)]
    origin = next(iter(lines[0].values())).origin
    axes.set(xscale="log", xlabel="images trained on", ylabel=f"RSUM on {origin.split}")
    axes.legend()
    shown = [system for points in lines for system in points.values()]
    caption = (f"RSUM on the {origin.split} split of {inputs.title} ({origin.images:,} images) by the number of images "
               "trained on, after Figure 3 of Geigle et al. A smaller number of images is a part of a larger one."
               f"{_seeds(shown)}{stand_in_sentence(member for system in shown for member in system.members)}")
    return Drawing(figure, caption, pd.DataFrame(rows))


def _lines(systems: Sequence[MeasuredSystem], every: int) -> dict[str, dict[int, MeasuredSystem]]:
    """Systems that differ in nothing but the images trained on: number of images -> system, where there are several."""
    found: dict[str, dict[int, MeasuredSystem]] = defaultdict(dict)
    for system in systems:
        sizes = {int(member.settings.get("images") or every) for member in system.members}
        if len(sizes) == 1 and sizes != {0}:
            found[_but_for_size(system)].setdefault(sizes.pop(), system)
    return {key: points for key, points in found.items() if len(points) > 1}


def _but_for_size(system: MeasuredSystem) -> str:
    origin = system.origin
    heads = [[member.feature, {key: value for key, value in member.settings.items() if key not in OF_SIZE}]
             for member in system.members]
    rerank = {key: value for key, value in origin.rerank if key != "with"}  # the scorer's name says its size
    return json.dumps([origin.dataset, origin.split, origin.protocol, origin.visual, origin.text, len(origin.steps),
                       rerank, heads], sort_keys=True)


def _seeds(systems: Sequence[MeasuredSystem]) -> str:
    most = max(len(system.systems) for system in systems)
    return f" Lines: mean over up to {most} seeds; bands: lowest to highest." if most > 1 else " One seed."

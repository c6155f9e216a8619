"""Figures of Geigle et al.: 3, RSUM by the number of images trained on; 4, cross-encoders with
every second layer.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence

import pandas as pd

from pipeline.evaluation.metrics import RSUM
from pipeline.report.figures import drawing
from pipeline.report.figures.drawing import BLUE, GREY, LINES, Drawing, FigureInputs, MissingInputs
from pipeline.report.measured import MeasuredSystem

# Settings that say which images a head was trained on.
OF_SIZE = ("images", "subset_seed")


def draw_training_images(inputs: FigureInputs) -> Drawing:
    """One line for each system, the mean over its seeds, and a band from the lowest to the highest.

    Source: Geigle et al., Figure 3, whose points are not printed as numbers.
    """
    lines = list(_lines(inputs.measured, inputs.train_images).values())
    if not lines:
        raise MissingInputs(
            "a system that was trained on several numbers of images: a recipe for each, `pipeline "
            "train -S training.NAME.images=1000`, and `pipeline evaluate`"
        )
    figure, axes = drawing.subplots(drawing.COLUMN_WIDTH, 2.5)
    rows: list[dict[str, object]] = []
    for number, points in enumerate(lines):
        line, sizes = LINES[number % len(LINES)], sorted(points)
        label = points[sizes[-1]].label()
        drawing.plot_mean(axes, {size: points[size].values[RSUM] for size in sizes}, label, line)
        rows += [
            {"system": name, "label": label, "images": size, "RSUM": rsum}
            for size in sizes
            for name, rsum in zip(points[size].systems, points[size].values[RSUM], strict=True)
        ]
    origin = next(iter(lines[0].values())).origin
    axes.set(xscale="log", xlabel="images trained on", ylabel=f"RSUM on {origin.split}")
    axes.legend()
    shown = [system for points in lines for system in points.values()]
    caption = inputs.caption(
        "training_images",
        split=origin.split,
        images=origin.images,
        seeds=drawing.seeds_sentence(max(len(system.systems) for system in shown)),
    )
    return Drawing(
        figure,
        caption,
        pd.DataFrame(rows),
        members=[each for system in shown for each in system.members],
    )


def _lines(systems: Sequence[MeasuredSystem], every: int) -> dict[str, dict[int, MeasuredSystem]]:
    """Systems that differ only in the images trained on: number of images -> system, for two or
    more such systems.
    """
    systems_by_size: dict[str, dict[int, MeasuredSystem]] = defaultdict(dict)
    for system in systems:
        sizes = {int(member.settings.get("images") or every) for member in system.members}
        if len(sizes) == 1 and sizes != {0}:
            systems_by_size[_but_for(system, *OF_SIZE)].setdefault(sizes.pop(), system)
    return {key: points for key, points in systems_by_size.items() if len(points) > 1}


def _but_for(system: MeasuredSystem, *ignored: str) -> str:
    """What made a system, except these settings of its heads or of their architecture."""
    origin, heads = system.origin, []
    for member in system.members:
        settings = {key: value for key, value in member.settings.items() if key not in ignored}
        architecture = settings.get("architecture") or {}
        compared = {key: value for key, value in architecture.items() if key not in ignored}
        heads.append([member.feature, settings | {"architecture": compared}])
    rerank = {
        key: value for key, value in origin.rerank if key != "with"
    }  # the scorer's name says its size
    return json.dumps(
        [
            origin.dataset,
            origin.split,
            origin.protocol,
            system.part,
            origin.visual,
            origin.text,
            len(origin.steps),
            rerank,
            heads,
        ],
        sort_keys=True,
    )


LAYERS = {False: ("all layers", BLUE), True: ("fewer layers", GREY)}


def draw_half_size(inputs: FigureInputs) -> Drawing:
    """Two bars for each system, with how many parameters its heads have.

    Source: Geigle et al., Figure 4, whose bars have no numbers.
    """
    pairs = _pairs(inputs.measured)
    if not pairs:
        raise MissingInputs(
            "a cross-encoder with all layers and one with fewer: train a recipe with architecture: "
            "{name: cross, layers: [0, 2, 4]} beside its base, and `pipeline evaluate`"
        )
    counts = {head.name: head.parameters for head in inputs.heads}
    figure, axes = drawing.subplots(drawing.COLUMN_WIDTH, 2.6)
    rows: list[dict[str, object]] = []
    for place, pair in enumerate(pairs):
        for fewer, system in pair.items():
            label, colour = LAYERS[fewer]
            size = sum(counts.get(member.head, 0) for member in system.members)
            at = place + (0.2 if fewer else -0.2)
            axes.bar(at, system.mean(RSUM), 0.36, color=colour, label=label if place == 0 else None)
            axes.annotate(
                f"{size / 1e6:.1f} M" if size else "?",
                (at, system.mean(RSUM)),
                ha="center",
                va="bottom",
                fontsize=7,
            )
            rows.append(
                {
                    "system": system.systems[0],
                    "part": system.part,
                    "layers": label,
                    "parameters": size or None,
                    "RSUM": system.mean(RSUM),
                }
            )
    origin, shown = pairs[0][False].origin, [system for pair in pairs for system in pair.values()]
    axes.set_xticks(range(len(pairs)), [pair[False].part for pair in pairs])
    axes.set(ylabel=f"RSUM on {origin.split}")
    drawing.legend_above(axes)
    caption = inputs.caption("half_size", split=origin.split)
    return Drawing(
        figure,
        caption,
        pd.DataFrame(rows),
        members=[each for system in shown for each in system.members],
    )


def _pairs(systems: Sequence[MeasuredSystem]) -> list[Mapping[bool, MeasuredSystem]]:
    """Systems that differ in nothing but their layers: whether layers were left out -> system."""
    pairs: dict[str, dict[bool, MeasuredSystem]] = defaultdict(dict)
    for system in systems:
        fewer = {
            bool((member.settings.get("architecture") or {}).get("layers"))
            for member in system.members
        }
        if system.part and len(fewer) == 1:
            pairs[_but_for(system, "layers")].setdefault(fewer.pop(), system)
    return [
        {fewer: pair[fewer] for fewer in LAYERS}
        for pair in pairs.values()
        if len(pair) == len(LAYERS)
    ]

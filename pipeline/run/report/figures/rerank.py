"""Figures of Geigle et al.: 3, RSUM by the number of images trained on; 4, cross-encoders with
every second layer.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence

import pandas as pd

from pipeline.foundation.evaluation.metrics import RSUM
from pipeline.judge.figures import drawing
from pipeline.judge.figures.drawing import BLUE, GREY, Drawing
from pipeline.judge.systems.scores.made import Member
from pipeline.run.report.figures.inputs import FigureInputs, MissingInputs
from pipeline.run.report.measured import MeasuredSystem

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
    csv_rows: list[dict[str, object]] = []
    members: list[Member] = []
    most_seeds = 0
    for line_number, points in enumerate(lines):
        sizes = sorted(points)
        label = points[sizes[-1]].label()
        sums = {size: points[size].values[RSUM] for size in sizes}
        drawing.plot_mean(axes, sums, label, drawing.LINES[line_number % len(drawing.LINES)])
        for size in sizes:
            for system_name, rsum in zip(points[size].systems, sums[size], strict=True):
                csv_row: dict[str, object] = {
                    "system": system_name,
                    "label": label,
                    "images": size,
                    "RSUM": rsum,
                }
                csv_rows.append(csv_row)
        for system in points.values():
            members += system.members
            most_seeds = max(most_seeds, len(system.systems))
    origin = next(iter(lines[0].values())).origin
    axes.set(xscale="log", xlabel="images trained on", ylabel=f"RSUM on {origin.split}")
    axes.legend()
    caption = inputs.caption(
        "training_images",
        split=origin.split,
        images=origin.images,
        seeds=drawing.seeds_sentence(most_seeds),
    )
    return Drawing(figure, caption, pd.DataFrame(csv_rows), members=members)


def _lines(
    systems: Sequence[MeasuredSystem], train_images: int
) -> dict[str, dict[int, MeasuredSystem]]:
    """Systems that differ only in the images trained on: number of images -> system, for two or
    more such systems.
    """
    lines: dict[str, dict[int, MeasuredSystem]] = defaultdict(dict)
    for system in systems:
        sizes = {int(member.settings.get("images") or train_images) for member in system.members}
        if len(sizes) == 1 and sizes != {0}:
            points = lines[_but_for(system, *OF_SIZE)]
            points.setdefault(sizes.pop(), system)
    return {key: points for key, points in lines.items() if len(points) > 1}


def _but_for(system: MeasuredSystem, *ignored: str) -> str:
    """What made a system, except these settings of its heads or of their architecture."""
    origin = system.origin
    heads = []
    for member in system.members:
        settings = {key: value for key, value in member.settings.items() if key not in ignored}
        architecture = settings.get("architecture") or {}
        compared = {key: value for key, value in architecture.items() if key not in ignored}
        heads.append([member.feature, settings | {"architecture": compared}])
    # The scorer's name says its size.
    rerank = {key: value for key, value in origin.rerank if key != "with"}
    made_by = [
        origin.dataset,
        origin.split,
        origin.protocol,
        system.part,
        origin.visual,
        origin.text,
        len(origin.steps),
        rerank,
        heads,
    ]
    return json.dumps(made_by, sort_keys=True)


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
    parameters_of_head = {head.name: head.parameters for head in inputs.heads}
    figure, axes = drawing.subplots(drawing.COLUMN_WIDTH, 2.6)
    csv_rows: list[dict[str, object]] = []
    members: list[Member] = []
    for bar_position, pair in enumerate(pairs):
        for fewer, system in pair.items():
            layers, colour = LAYERS[fewer]
            rsum = system.mean(RSUM)
            parameters = sum(parameters_of_head.get(member.head, 0) for member in system.members)
            parameters_text = "?"
            if parameters:
                parameters_text = f"{parameters / 1e6:.1f} M"
            x = bar_position - 0.2
            if fewer:
                x = bar_position + 0.2
            # One entry of each colour in the legend.
            label = layers if bar_position == 0 else None
            axes.bar(x, rsum, 0.36, color=colour, label=label)
            axes.annotate(parameters_text, (x, rsum), ha="center", va="bottom", fontsize=7)
            csv_row: dict[str, object] = {
                "system": system.systems[0],
                "part": system.part,
                "layers": layers,
                "parameters": parameters or None,
                "RSUM": rsum,
            }
            csv_rows.append(csv_row)
            members += system.members
    split = pairs[0][False].origin.split
    axes.set_xticks(range(len(pairs)), [pair[False].part for pair in pairs])
    axes.set(ylabel=f"RSUM on {split}")
    drawing.legend_above(axes)
    caption = inputs.caption("half_size", split=split)
    return Drawing(figure, caption, pd.DataFrame(csv_rows), members=members)


def _pairs(systems: Sequence[MeasuredSystem]) -> list[Mapping[bool, MeasuredSystem]]:
    """Systems that differ in nothing but their layers: whether layers were left out -> system."""
    pairs: dict[str, dict[bool, MeasuredSystem]] = defaultdict(dict)
    for system in systems:
        fewer = set()
        for member in system.members:
            architecture = member.settings.get("architecture") or {}
            fewer.add(bool(architecture.get("layers")))
        if system.part and len(fewer) == 1:
            pairs[_but_for(system, "layers")].setdefault(fewer.pop(), system)
    complete: list[Mapping[bool, MeasuredSystem]] = []
    for pair in pairs.values():
        if len(pair) == len(LAYERS):
            complete.append({fewer: pair[fewer] for fewer in LAYERS})
    return complete

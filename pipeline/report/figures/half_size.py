"""Figure 4 of Geigle et al.: cross-encoders with all layers, and with every second one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence

import pandas as pd

from pipeline.report import names
from pipeline.report.figures.drawing import BLUE, COLUMN_WIDTH, GREY, Drawing, MissingInputs, empty_figure, legend_above
from pipeline.report.figures.figure_inputs import FigureInputs, stand_in_sentence
from pipeline.report.measured import MeasuredSystem

SIZES = {False: ("all layers", BLUE), True: ("fewer layers", GREY)}


def draw(inputs: FigureInputs) -> Drawing:
    """Two bars for each system, with how many parameters its heads have.

    Args:
        inputs: Measured systems and the heads behind them.

    Returns:
        The figure, its caption and its numbers.

    Raises:
        MissingInputs: If there are no two systems that differ in nothing but their layers.

    Source: Geigle et al., Figure 4, whose bars have no numbers.
    """
    pairs = _pairs(inputs.measured)
    if not pairs:
        raise MissingInputs("a cross-encoder with all layers and one with fewer: train a recipe with architecture: "
                            "{name: cross, layers: [0, 2, 4]} beside its base, and `pipeline evaluate`")
    counts = {head.name: head.parameters for head in inputs.heads}
    figure = empty_figure(COLUMN_WIDTH, 2.6)
    axes = figure.subplots()
    rows: list[dict[str, object]] = []
    for place, pair in enumerate(pairs):
        for fewer, system in pair.items():
            label, colour = SIZES[fewer]
            size = sum(counts.get(member.head, 0) for member in system.members)
            at = place + (0.2 if fewer else -0.2)
            axes.bar(at, system.mean("rsum"), 0.36, color=colour, label=label if place == 0 else None)
            axes.annotate(f"{size / 1e6:.1f} M" if size else "?", (at, system.mean("rsum")), ha="center", va="bottom",
                          fontsize=7)
            rows.append({"system": system.systems[0], "part": names.part(system), "layers": label,
                         "parameters": size or None, "rsum": system.mean("rsum")})
    origin, shown = pairs[0][False].origin, [system for pair in pairs for system in pair.values()]
    axes.set_xticks(range(len(pairs)), [names.part(pair[False]) for pair in pairs])
    axes.set(ylabel=f"RSUM on {origin.split}")
    legend_above(axes)
    caption = (f"RSUM on the {origin.split} split of {inputs.title} of cross-encoders with all layers and with fewer, "
               "after Figure 4 of Geigle et al. Above the bars: millions of parameters of all heads of a system, "
               "words' vectors among them."
               f"{stand_in_sentence(member for system in shown for member in system.members)}")
    return Drawing(figure, caption, pd.DataFrame(rows))


def _pairs(systems: Sequence[MeasuredSystem]) -> list[Mapping[bool, MeasuredSystem]]:
    """Systems that differ in nothing but their layers: whether layers were left out -> system."""
    found: dict[str, dict[bool, MeasuredSystem]] = defaultdict(dict)
    for system in systems:
        fewer = {bool((member.settings.get("architecture") or {}).get("layers")) for member in system.members}
        if names.part(system) and len(fewer) == 1:
            found[_but_for_layers(system)].setdefault(fewer.pop(), system)
    return [{fewer: pair[fewer] for fewer in SIZES} for pair in found.values() if len(pair) == len(SIZES)]


def _but_for_layers(system: MeasuredSystem) -> str:
    origin = system.origin
    heads = []
    for member in system.members:
        architecture = {key: value for key, value in member.settings["architecture"].items() if key != "layers"}
        heads.append([member.feature, {**member.settings, "architecture": architecture}])
    rerank = {key: value for key, value in origin.rerank if key != "with"}  # the scorer's name says its size
    return json.dumps([origin.dataset, origin.split, origin.protocol, names.part(system), origin.visual,
                       origin.text, rerank, heads], sort_keys=True)

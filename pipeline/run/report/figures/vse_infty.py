"""VSE∞'s figures: 3, the time of a query; 5, the coefficients that GPO learned; 6, a grid over K of
k-max pooling.
"""

import math
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import refusing
from pipeline.foundation.settings import kinds
from pipeline.foundation.settings.parts import PoolingSettings
from pipeline.judge.figures import drawing
from pipeline.judge.figures.drawing import PAGE_WIDTH, Drawing
from pipeline.run.provenance.heads import TrainedHead, one_per_seed
from pipeline.run.report.figures.inputs import FigureInputs, MissingInputs

LEAST = 4  # the fewest cells of a grid


def draw_kmax_grid(inputs: FigureInputs) -> Drawing:
    """A heat map of RSUM on val by K of images and K of captions, the mean over seeds; the best is
    framed.

    A head's cell follows from its settings, not from its name: both poolings are kmax, max (K = 1)
    or mean (all items).

    Source: VSE∞, Figure 6.
    """
    heads = _differing_in_k(inputs)
    rows = []
    for head in heads:
        row = {
            "head": head.name,
            "k_image": _k(head.setting("image_pooling")),
            "k_text": _k(head.setting("text_pooling")),
            "seed": head.request.seed,
            "RSUM": head.best,
        }
        rows.append(row)
    table = pd.DataFrame(rows)
    means = table.pivot_table(index="k_image", columns="k_text", values="RSUM", aggfunc="mean")
    grid = means.sort_index(axis=0).sort_index(axis=1)
    figure, axes = drawing.subplots(drawing.COLUMN_WIDTH, 0.9 + 0.32 * len(grid))
    values = np.ma.masked_invalid(grid.to_numpy())
    # The lightness of its colours rises evenly.
    image = axes.imshow(values, cmap="cividis", aspect="auto", origin="lower")
    axes.set_facecolor("#eeeeee")
    axes.grid(visible=False)
    axes.set(
        xlabel="K of captions",
        ylabel="K of images",
        xticks=range(grid.shape[1]),
        yticks=range(grid.shape[0]),
        xticklabels=[_shown(k) for k in grid.columns.astype(float)],
        yticklabels=[_shown(k) for k in grid.index.astype(float)],
    )
    _write_values(axes, values)
    figure.colorbar(image, label="RSUM on val", shrink=0.9)
    is_complete = not grid.isna().any(axis=None)
    first = heads[0]
    caption = inputs.caption(
        "kmax_grid",
        first,
        lacking="" if is_complete else "; grey: not trained",
        side=first.request.feature.capitalize(),
        objective=first.setting("objective")["name"],
    )
    numbers = table.replace({math.inf: "all"})
    return Drawing(figure, caption, numbers, members=[head.member for head in heads])


def _differing_in_k(inputs: FigureInputs) -> list[TrainedHead]:
    """Choose the largest set of heads that differ in K alone, one for each cell and seed; of the
    run if possible.
    """
    sets: dict[str, dict[tuple[float, float], list[TrainedHead]]] = {}
    for head in inputs.preferred_first(inputs.trained, "vse_infty"):
        k_image = _k(head.setting("image_pooling"))
        k_text = _k(head.setting("text_pooling"))
        if k_image is None or k_text is None:
            continue
        cells = sets.setdefault(head.settings_key("image_pooling", "text_pooling"), {})
        cells.setdefault((k_image, k_text), []).append(head)
    large: list[list[TrainedHead]] = []
    for cells in sets.values():
        if len(cells) >= LEAST:
            of_cells = [one_per_seed(heads) for heads in cells.values()]
            large.append(list(chain.from_iterable(of_cells)))
    if not large:
        raise MissingInputs(
            "four or more heads that differ in K of their k-max poolings alone: train "
            "vse_infty-max_max, vse_infty-max_mean, vse_infty-mean_max and vse_infty-mean_mean on one "
            "feature, or such recipes with image_pooling {name: kmax, k: I} and text_pooling "
            "{name: kmax, k: T}"
        )
    of_run = [heads for heads in large if any(head.run_key in inputs.run for head in heads)]
    return max(of_run or large, key=len)


def _k(pooling: Mapping[str, Any]) -> float | None:
    """K of a pooling: 1 for max, infinity for mean; None for poolings other than these and kmax."""
    match pooling.get("name"):
        case "kmax":
            return float(PoolingSettings.of(**pooling).completed.k)
        case "max":
            return 1.0
        case "mean":
            return math.inf
    return None


def _shown(k: float) -> str:
    return "all" if k == math.inf else f"{k:.0f}"


def _write_values(axes: Axes, values: np.ma.MaskedArray) -> None:
    """Write every cell's value, white on dark and black on light cells, and frame the best."""
    dark_below = (values.min() + values.max()) / 2
    for (row, column), value in np.ndenumerate(values):
        if value is np.ma.masked or np.isnan(value):
            continue
        colour = "white" if value < dark_below else "black"
        text = f"{value:.1f}"
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
    row, column = np.unravel_index(values.argmax(), values.shape)
    corner = (column - 0.5, row - 0.5)
    for colour, width in (("white", 3.0), ("black", 1.4)):
        frame = Rectangle(
            corner, 1, 1, fill=False, edgecolor=colour, linewidth=width, clip_on=False
        )
        axes.add_patch(frame)


CAPTION_TOKENS = 15


def draw_pooling_coefficients(inputs: FigureInputs) -> Drawing:
    """Coefficients by position, of images on the left and captions on the right; one line for each
    feature.

    Source: VSE∞, Figure 5.
    """
    if find_spec("torch") is None:
        raise MissingInputs(f"torch: {extras.line('training')}")
    heads = _with_gpo(inputs)
    figure, panels = drawing.subplots(PAGE_WIDTH, 2.2, 1, 2)
    csv_rows = []
    for line, head in zip(drawing.LINES, heads, strict=False):
        feature = head.request.feature
        sizes = {"image": inputs.items[feature], "text": CAPTION_TOKENS}
        for axes, (side, size) in zip(panels, sizes.items(), strict=True):
            theta = coefficients(head, f"{side}_pooling", size)
            positions = np.arange(1, size + 1)
            label = f"{feature}, N = {size}"
            # A marker on each of many positions would hide the line.
            axes.plot(positions, theta, label=label, markevery=max(1, size // 16), **line)
            for position, coefficient in enumerate(theta, start=1):
                csv_row = {"head": head.name, "side": side, "position": position}
                csv_rows.append({**csv_row, "coefficient": float(coefficient)})
    for axes, title in zip(panels, ("images", "captions"), strict=True):
        axes.set(
            xlabel=f"{title}: position after sorting (1 = greatest)",
            ylabel="coefficient",
            ylim=(0, None),
        )
        drawing.legend_above(axes)
    caption = inputs.caption("pooling_coefficients", heads[0], tokens=CAPTION_TOKENS)
    members = [head.member for head in heads]
    return Drawing(figure, caption, pd.DataFrame(csv_rows), members=members, wide=True)


def _with_gpo(inputs: FigureInputs) -> list[TrainedHead]:
    """Heads of one recipe, text encoder and seed with GPO on both sides."""
    heads = []
    for head in inputs.heads:
        poolings = (head.setting("image_pooling"), head.setting("text_pooling"))
        if all(map(_is_plain_gpo, poolings)):
            heads.append(head)
    if not heads:
        raise MissingInputs(
            "a head with gpo for images and captions, not data dependent and not per dimension: "
            "train vse_infty"
        )
    return inputs.preferred_system(heads, "vse_infty")


def _is_plain_gpo(pooling: Mapping[str, Any]) -> bool:
    if pooling.get("name") != "gpo":
        return False
    return not (pooling.get("data_dependent") or pooling.get("per_dimension"))


def coefficients(head: TrainedHead, side: str, size: int) -> np.ndarray:
    """The coefficients of a head's GPO for N items: float32 [N], that of the k-th greatest value at
    position k - 1.
    """
    import torch

    pooling = PoolingSettings.of(**head.setting(side))
    poolings = kinds.TABLES["poolings"]
    gpo = poolings.build("gpo", head.request.training.dimension, **pooling.options)
    with refusing(
        RuntimeError,
        f"{head.folder}/best.safetensors: does not fit the head's settings; train it again",
    ):
        gpo.load_state_dict(head.tensors(side))
    with torch.inference_mode():
        of_positions: np.ndarray = gpo.coefficients(torch.tensor([size]))[0, :, 0].numpy()
    return of_positions


SYSTEMS = {
    "cross_encoder": "cross-encoder (model)",
    "ensemble": "VSE, ensemble RGP",
    "head": "VSE, one head",
}


def draw_retrieval_time(inputs: FigureInputs) -> Drawing:
    """Three lines with both axes logarithmic; the times are those of results/throughput.json.

    Source: VSE∞, Figure 3.
    """
    if not inputs.throughput:
        raise MissingInputs("results/throughput.json: run `pipeline lab throughput`")
    seconds_of_pools = pd.DataFrame(inputs.throughput["pools"])
    figure, axes = drawing.subplots(drawing.COLUMN_WIDTH, 2.3)
    line_styles = drawing.LINES[1::-1] + drawing.LINES[2:]
    for line_style, (column, label) in zip(line_styles, SYSTEMS.items(), strict=False):
        axes.plot(seconds_of_pools["images"], seconds_of_pools[column], label=label, **line_style)
    axes.set(xscale="log", yscale="log", xlabel="images searched", ylabel="seconds a query")
    axes.legend()
    busy = ""
    if inputs.throughput.get("busy"):
        busy = " Other work ran on the machine meanwhile; time it again."
    caption = inputs.caption("retrieval_time", how=inputs.throughput["methods"]["pools"], busy=busy)
    return Drawing(figure, caption, seconds_of_pools)

"""VSE∞ figure 5: the pooling coefficients that GPO learned."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from pipeline.errors import InputError
from pipeline.heads import pooling
from pipeline.heads.pooling.gpo import GPO
from pipeline.report import names
from pipeline.report.figures.drawing import LINES, PAGE_WIDTH, Drawing, MissingInputs, empty_figure
from pipeline.report.figures.figure_inputs import FigureInputs, stand_in_sentence
from pipeline.report.heads import TrainedHead
from pipeline.training.checkpoint import load_tensors

CAPTION_TOKENS = 15


def draw(inputs: FigureInputs) -> Drawing:
    """Coefficients by position, of images on the left and captions on the right; one line for each feature.

    Args:
        inputs: Heads, scores and timings, as far as they exist.

    Returns:
        The figure, its caption and its numbers.

    Raises:
        MissingInputs: If no head has GPO on both sides.

    Source: VSE∞, Figure 5.
    """
    heads = _chosen(inputs)
    figure = empty_figure(PAGE_WIDTH, 2.2)
    panels = figure.subplots(1, 2)
    rows = []
    for line, head in zip(LINES, heads, strict=False):
        for axes, side, size in zip(panels, ("image", "text"), (inputs.items[head.feature], CAPTION_TOKENS),
                                    strict=True):
            theta = coefficients(head, f"{side}_pooling", size)
            label = f"{head.feature}, N = {size}" if side == "image" else f"beside {head.feature}, N = {size}"
            # A marker on each of many positions would hide the line.
            axes.plot(np.arange(1, size + 1), theta, label=label, markevery=max(1, size // 16), **line)
            rows += [{"head": head.name, "side": side, "position": k, "coefficient": float(value)}
                     for k, value in enumerate(theta, start=1)]
    for axes, title in zip(panels, ("images", "captions"), strict=True):
        axes.set(title=title, xlabel="position after sorting (1 = greatest)", ylabel="coefficient", ylim=(0, None))
        axes.legend()
    caption = (f"Pooling coefficients that GPO learned on {inputs.title}, after Figure 5 of VSE∞: the weight of the "
               f"k-th greatest value, for images of as many items as the store holds and captions of {CAPTION_TOKENS} "
               f"tokens. Recipe {names.method(heads[0].recipe)}, {names.encoder(heads[0].text)}, seed {heads[0].seed}."
               + stand_in_sentence(head.member for head in heads))
    return Drawing(figure, caption, pd.DataFrame(rows), wide=True)


def _chosen(inputs: FigureInputs) -> list[TrainedHead]:
    """Heads of one recipe, text encoder and seed with GPO on both sides."""
    heads = [head for head in inputs.heads
             if all(_is_plain_gpo(head.setting(f"{side}_pooling")) for side in ("image", "text"))]
    if not heads:
        raise MissingInputs("a head with gpo for images and captions, not data dependent and not per dimension: "
                      "train vse_infty")
    return inputs.preferred_system(heads, "vse_infty")


def _is_plain_gpo(setting: object) -> bool:
    """Whether the coefficients depend on the number of items alone, and are the same for every dimension."""
    match setting:
        case {"name": "gpo", **options}:
            return not (options.get("data_dependent") or options.get("per_dimension"))
    return False


@torch.inference_mode()
def coefficients(head: TrainedHead, side: str, size: int) -> np.ndarray:
    """The pooling coefficients of a head's GPO, from its checkpoint.

    Args:
        head: A head with GPO.
        side: image_pooling or text_pooling.
        size: N, the number of items.

    Returns:
        θ, float32 [N], the weight of the k-th greatest value at position k - 1.

    Raises:
        InputError: If the checkpoint does not fit the head's settings.
    """
    options = {name: value for name, value in head.setting(side).items() if name != "name"}
    gpo = pooling.build("gpo", head.description["training"]["dimension"], **options)
    tensors, _ = load_tensors(head.folder / "best.safetensors")
    try:
        gpo.load_state_dict({name.removeprefix(f"{side}."): value for name, value in tensors.items()
                             if name.startswith(f"{side}.")})
    except RuntimeError:
        raise InputError(f"{head.folder}/best.safetensors: does not fit the head's settings; train it again") from None
    assert isinstance(gpo, GPO)
    return gpo.coefficients(torch.tensor([size]))[0, :, 0].numpy()

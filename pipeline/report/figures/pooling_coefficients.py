"""VSE∞ figure 5: the pooling coefficients that GPO learned."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from pipeline.errors import InputError
from pipeline.heads import pooling
from pipeline.heads.pooling.gpo import GPO
from pipeline.report import names
from pipeline.report.figures.drawing import LINES, PAGE, Drawing, Lacking, blank
from pipeline.report.figures.evidence import Evidence, not_the_papers
from pipeline.report.heads import TrainedHead
from pipeline.training.checkpoint import load_tensors

CAPTION_TOKENS = 15


def draw(evidence: Evidence) -> Drawing:
    """Left the images' coefficients by position, right the captions'; one line for each feature's head.

    Raises Lacking without a head with GPO on either side.
    """
    heads = _chosen(evidence)
    figure = blank(PAGE, 2.2)
    panels = figure.subplots(1, 2)
    rows = []
    for line, head in zip(LINES, heads, strict=False):
        for axes, side, size in zip(panels, ("image", "text"), (evidence.items[head.feature], CAPTION_TOKENS),
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
    caption = (f"Pooling coefficients that GPO learned on {evidence.title}, after Figure 5 of VSE∞: the weight of the "
               f"k-th greatest value, for images of as many items as the store holds and captions of {CAPTION_TOKENS} "
               f"tokens. Recipe {names.method(heads[0].recipe)}, {names.encoder(heads[0].text)}, seed {heads[0].seed}."
               + not_the_papers(head.member for head in heads))
    return Drawing(figure, caption, pd.DataFrame(rows), wide=True)


def _chosen(evidence: Evidence) -> list[TrainedHead]:
    """The heads of one recipe, text encoder and seed with GPO on both sides."""
    heads = [head for head in evidence.heads
             if all(_is_plain_gpo(head.setting(f"{side}_pooling")) for side in ("image", "text"))]
    if not heads:
        raise Lacking("a head with gpo for images and captions, not data dependent and not per dimension: "
                      "train vse_infty")
    return evidence.system(heads, "vse_infty")


def _is_plain_gpo(setting: object) -> bool:
    """Its coefficients depend on the size alone and are one curve."""
    match setting:
        case {"name": "gpo", **options}:
            return not (options.get("data_dependent") or options.get("per_dimension"))
    return False


@torch.inference_mode()
def coefficients(head: TrainedHead, side: str, size: int) -> np.ndarray:
    """θ [size] float32 of a head's GPO, from its checkpoint; `side` is image_pooling or text_pooling."""
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

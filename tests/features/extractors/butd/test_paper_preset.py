"""The preset `paper` as it ships, to the first forward pass: random weights of fewer blocks under
the real files' names and formats.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from shallow import shallow
from test_butd_cnn import as_published
from timm import create_model
from torch import nn

from pipeline.foundation import settings
from pipeline.foundation.files.weights import checkpoints
from pipeline.make.features import extractors
from pipeline.make.features.extraction import needs
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.extractors.butd.network import FasterRCNN
from pipeline.make.features.extractors.network import caffe_resnet101

pytestmark = pytest.mark.slow

PARAMS = Path(__file__).parents[4] / "params.yaml"
# Of 36 regions and 300 proposals: most of the time is spent on them.
FEWER = {"region": {"min_boxes": 4, "max_boxes": 4, "proposals": 6}}
VIT = "vit_base_patch16_224.orig_in21k_ft_in1k"


def drawn(make: Callable[[], nn.Module]) -> nn.Module:
    """A network with random weights, sooner than by its own rules of drawing them."""
    with torch.device("meta"):
        network = make()
    network.to_empty(device="cpu")
    generator = torch.Generator().manual_seed(0)
    for value in network.state_dict().values():
        if value.ndim > 1:
            bound = value[0].numel() ** -0.5
            value.uniform_(-bound, bound, generator=generator)
        else:
            value.fill_(1)
    return network


def detector(root: Path) -> None:
    """py-bottom-up-attention's pickle of arrays, but for its protocol 2, which takes seconds for so
    many.
    """
    state = {name: value.numpy() for name, value in drawn(FasterRCNN).state_dict().items()}
    (root / "data" / "weights").mkdir(parents=True)
    with (root / "data" / "weights" / "faster_rcnn_from_caffe_attr.pkl").open("wb") as file:
        pickle.dump({"model": state, "__author__": "VG"}, file, protocol=4)


def backbone(root: Path) -> None:
    """VSE∞'s torch file of the ResNet-101."""
    (root / "data" / "weights").mkdir(parents=True)
    file = root / "data" / "weights" / "original_updown_backbone.pth"
    torch.save(as_published(drawn(caffe_resnet101)), file)


def transformer(root: Path) -> None:
    """A Hugging Face cache, as the download of the card's commit leaves it."""
    snapshot = (
        root
        / f"models--timm--{VIT}"
        / "snapshots"
        / str(checkpoints()["vit-base-patch16-224"].revision)
    )
    snapshot.mkdir(parents=True)
    state = drawn(lambda: create_model(VIT, depth=1)).state_dict()
    save_file(state, snapshot / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("feature", "write", "items", "dimension", "recipe", "name"),
    [
        ("region", detector, 4, 2048, "butd-36-proposals", "butd-4-proposals-rpn6"),
        ("grid", backbone, 256, 2048, "grid16-butd_resnet101", "grid16-butd_resnet101"),
        ("patch", transformer, 197, 768, f"patch-{VIT}", f"patch-{VIT}"),
    ],
)
def test_first_forward_pass(
    feature: str,
    write: Callable[[Path], None],
    items: int,
    dimension: int,
    recipe: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shallow(monkeypatch)
    monkeypatch.setattr("timm.create_model", partial(create_model, depth=1))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    chosen = settings.load(PARAMS)
    assert [lacking for lacking, _ in needs.missing(chosen, "coco", [feature])] == [feature]
    write(tmp_path)
    monkeypatch.setattr(
        "pipeline.foundation.files.weights._compare", lambda *of_a_file: None
    )  # random ones have no card's digest
    assert needs.missing(chosen, "coco", [feature]) == []
    how = chosen.engine_of("coco", feature)
    assert extractors.ENGINES.options(how.engine, how.options).reported_as == recipe
    engine = extractors.build(how.engine, {**how.options, **FEWER.get(feature, {})}, Runtime())
    assert (engine.items, engine.dimension, engine.trained) == (items, dimension, True)
    assert engine.reported_as == name
    noise = np.random.default_rng(0).integers(0, 255, (25, 250, 3), dtype=np.uint8)
    picture = Image.fromarray(noise).resize(
        (500, 50)
    )  # long and low: the detector's input is a fifth of a usual one
    (found,) = engine.extract([engine.prepare(picture)], [picture.size])
    assert found.features.shape == (items, dimension)
    assert np.isfinite(found.features).all()
    assert found.features.any(axis=1).all()

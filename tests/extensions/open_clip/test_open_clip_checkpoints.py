"""Checkpoints of OpenCLIP's training against the network that was trained, and what is refused."""

from __future__ import annotations

import argparse
import io
import json
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image
from tiny_open_clip import LIMIT, OWN, TIMM, Run, trained, written

from pipeline.foundation.parts.errors import InputError, InputWarning
from pipeline.make import dual_encoders
from pipeline.make.dual_encoders import record
from pipeline.make.dual_encoders.base import Usage

pytestmark = pytest.mark.slow

CAPTIONS = ["a red circle", "The Blue square, left of it, and another one", "green"]
SIZE, LENGTH = {"force_image_size": 48}, {"force_context_length": 9}
SHOWN = {
    "image_mean": [0.5] * 3,
    "image_std": [0.4] * 3,
    "image_interpolation": "bilinear",
    "image_resize_mode": "squash",
}
RUNS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": (OWN, {}),
    "quick_gelu": (OWN, {"force_quick_gelu": True}),
    "image size": (OWN, SIZE),
    "oblong": (OWN, {"force_image_size": (48, 32)}),
    "context length": (OWN, LENGTH),
    "custom text": (OWN, {"force_custom_text": True}),
    "siglip": (OWN, {"siglip": True}),
    "preprocessing": (OWN, SHOWN),
    "wrapped": (OWN, {"prefix": "module._orig_mod."}),
    "averaged": (OWN, {"ema": True}),
    "distributed": (OWN, {"distributed": True}),
    "timm": (TIMM, {"force_image_size": 64}),
}


def pictures() -> list[Image.Image]:
    generator = np.random.default_rng(0)
    return [
        Image.fromarray(generator.integers(0, 256, (height, width, 3), np.uint8))
        for height, width in ((40, 70), (64, 32))
    ]


def load(run: Run | Path, key: str = "") -> Any:
    return dual_encoders.load(
        f"open_clip:{run.checkpoint if isinstance(run, Run) else run}{key}", Usage()
    )


def refused(run: Run | Path, message: str, key: str = "") -> None:
    with pytest.raises(InputError, match=message) as caught:
        load(run, key)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings(
    "ignore:torch.distributed is disabled", "ignore:.*the averaged weights are read"
)
@pytest.mark.parametrize("name", RUNS)
@torch.inference_mode()
def test_vectors_are_those_of_the_trained_network(tmp_path: Path, name: str) -> None:
    model, flags = RUNS[name]
    run = trained(tmp_path / "run", model, **flags)
    encoder = load(run)
    images = run.network.encode_image(
        torch.stack([run.transform(picture) for picture in pictures()]), normalize=True
    )
    np.testing.assert_allclose(
        encoder.embed_images([encoder.prepare(picture) for picture in pictures()]),
        images,
        atol=1e-6,
    )
    captions = run.network.encode_text(run.tokenize(CAPTIONS), normalize=True)
    np.testing.assert_allclose(encoder.embed_captions(CAPTIONS), captions, atol=1e-6)
    found = record.described(f"open_clip:{run.checkpoint}", encoder, None)
    assert found["token_limit"] == flags.get("force_context_length", LIMIT)
    assert found["activation"]["text"] == ("QuickGELU" if name == "quick_gelu" else "GELU")
    assert [*found["preprocessing"]["mean"]] == flags.get(
        "image_mean", [0.48145466, 0.4578275, 0.40821073]
    )
    assert {"force_image_size", "force_quick_gelu"} & flags.keys() <= found["facts"].keys()
    assert {"params.txt", "tiny.json"} <= encoder.files.keys()


def test_preprocessing_is_of_flags_then_of_the_first_weights_then_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = {"mean": [0.2] * 3, "std": [0.2] * 3}
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, "tiny", {"begun": begun})
    run = trained(tmp_path / "run", OWN, said={"pretrained": "begun"}, image_std=[0.3] * 3)
    preprocessing = {"mean": [0.1] * 3, "std": [0.1] * 3, "interpolation": "bilinear"}
    configuration = {"model_cfg": OWN, "preprocess_cfg": preprocessing}
    (tmp_path / "run" / "tiny.json").write_text(json.dumps(configuration))
    expected = {"mean": [0.2] * 3, "std": [0.3] * 3, "interpolation": "bilinear"}
    read = load(run).preprocessing
    assert {name: read[name] for name in expected} == expected


def test_averaged_and_last_weights_are_told_apart(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", OWN, ema=True)
    with pytest.warns(
        InputWarning, match="averaged weights are read.*epoch_1.pt#state_dict has the last ones"
    ):
        averaged = load(run)
    last = load(run, "#state_dict")
    assert (averaged.facts["weights"], last.facts["weights"]) == ("state_dict_ema", "state_dict")
    assert record.identity("open_clip:a", averaged) != record.identity("open_clip:a", last)
    refused(run, "has no model; it holds state_dict_ema, state_dict", "#model")


@pytest.mark.parametrize(
    ("flags", "said", "message"),
    [
        (
            SIZE,
            {"force_image_size": None},
            r"visual.positional_embedding has the shape \[37, 16\].* asks for \[17, 16\]: "
            r"the image size \(force_image_size\) is another",
        ),
        (
            LENGTH,
            {"force_context_length": None},
            r"the context length \(force_context_length\) is another",
        ),
        (
            {"force_custom_text": True},
            {"force_custom_text": False},
            "write force_custom_text: True",
        ),
        ({}, {"model": "ViT-S-32-alt"}, "tensors are in one alone"),
        (
            {},
            {"model": "mine"},
            "model 'mine' is none that OpenCLIP .* knows; put its configuration beside it, mine.json",
        ),
        ({}, {"model": "hf-hub:some/one"}, "is none that OpenCLIP"),
        ({}, {"model": None}, "names no model"),
        ({}, {"force_naflex_vision": True}, "NaFlex, which is not read"),
    ],
)
def test_a_forgotten_flag_is_refused(
    tmp_path: Path, flags: dict[str, Any], said: dict[str, Any], message: str
) -> None:
    """The library resizes tables and says nothing."""
    refused(trained(tmp_path / "run", OWN, said=said, **flags), message)


def test_a_folder_whose_tables_would_be_resized_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", OWN)
    config = json.loads((folder / "open_clip_config.json").read_text())
    config["model_cfg"]["vision_cfg"]["image_size"] = 48
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    refused(
        folder,
        r"has the shape \[17, 16\], and its configuration asks for \[37, 16\]: the image size",
    )


def test_what_is_missing_or_damaged_is_refused(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", OWN)
    content = run.checkpoint.read_bytes()
    run.checkpoint.write_bytes(content[:-200])
    refused(run, "is damaged, cut short or no file of torch.save")
    torch.save({"state_dict": {}, "args": argparse.Namespace(lr=1)}, run.checkpoint)
    refused(run, "holds argparse.Namespace")
    state = torch.load(io.BytesIO(content))["state_dict"]
    torch.save({"state_dict": {f"model.{name}": state[name] for name in state}}, run.checkpoint)
    refused(run, r"its names begin with model\.: save the network without its wrapper")
    torch.save({"model_state_dict": state, "epoch": 1}, run.checkpoint)
    load(run)
    run.checkpoint.write_bytes(content)
    (tmp_path / "run" / "params.txt").rename(tmp_path / "params.txt")
    refused(
        run,
        "no params.txt of its training beside it or one folder above; copy it there, or write one",
    )
    (tmp_path / "run" / "checkpoints" / "params.txt").write_text(
        "model: tiny\n"
    )  # what a user writes
    (tmp_path / "run" / "tiny.json").rename(tmp_path / "run" / "checkpoints" / "tiny.json")
    load(run)


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_no_pickle_of_a_distributed_checkpoint_is_run(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", OWN, distributed=True)
    metadata = run.checkpoint / ".metadata"
    content = metadata.read_bytes()

    class Payload:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return os.system, (f"touch {tmp_path / 'ran'}",)

    metadata.write_bytes(pickle.dumps(Payload()))
    refused(run, "it names (posix|nt).system, which no array needs; do not trust it")
    assert not (tmp_path / "ran").exists()
    metadata.write_bytes(content.replace(b"__0_0.distcp", b"../_0.distcp"))
    refused(run, "not readable as a distributed checkpoint")
    metadata.write_bytes(content)
    shards = run.checkpoint / "__0_0.distcp"
    shards.write_bytes(shards.read_bytes()[:5000])
    refused(
        run, "not readable as a distributed checkpoint of torch .*; copy the whole folder again"
    )


def test_a_training_begun_with_openais_weights_is_asked_for_its_activation(tmp_path: Path) -> None:
    """OpenCLIP before 2.29 trained these with QuickGELU, of which neither file says a word."""
    with pytest.warns(InputWarning, match="began with OpenAI's weights and names no activation"):
        load(trained(tmp_path / "run", OWN, said={"pretrained": "openai"}))
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        load(trained(tmp_path / "other", OWN, said={"pretrained": "openai"}, force_quick_gelu=True))

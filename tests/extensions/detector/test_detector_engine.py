"""The engine `detector` over photographs, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_detectors
import tiny_dual_encoders
from PIL import Image, ImageOps
from safetensors.torch import load_file, save_file

from pipeline.foundation import manifest
from pipeline.foundation.files.images import ImageError
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features import extraction, extractors
from pipeline.make.features.extraction import needs
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.store import FeatureStore

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_detectors.written(tmp_path_factory.mktemp("detector"), "rt_detr")


def build(folder: Path, **options: Any) -> Any:
    return extractors.build("detector", {"weights": str(folder), **options}, Runtime())


def test_boxes_refer_to_the_upright_photograph(folder: Path, tmp_path: Path) -> None:
    upright = Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 90, 3), np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    upright.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "turned.png", exif=exif)
    assert ImageOps.exif_transpose(Image.open(tmp_path / "turned.png")).size == upright.size
    Image.new("RGB", (1, 1)).save(tmp_path / "one.png")
    (tmp_path / "captions.csv").write_text(
        "image,caption,split\nturned.png,a,train\none.png,b,train\n"
    )
    photographs = manifest.build("turned", tmp_path, tmp_path / "captions.csv")
    store = tmp_path / "detector.zarr"
    job = extraction.ExtractionJob(
        photographs,
        tmp_path,
        store,
        extraction.EngineSpec("detector", {"weights": str(folder), "whole_image": True}, Runtime()),
        2,
        2,
        on_error="skip",
    )
    outcome = extraction.extract(job)
    assert outcome.failed == {1: "1 x 1 pixels are too few to look for objects in"}
    stored = FeatureStore(store).require(photographs)
    engine = build(folder, whole_image=True)
    expected = engine.extract([engine.prepare(upright)], [upright.size])[0]
    boxes = stored.extra("boxes", np.array([0]))[0]
    assert boxes[0].tolist() == [0, 0, 90, 60]
    np.testing.assert_allclose(
        boxes[: len(expected.extras["boxes"])], expected.extras["boxes"], atol=1e-3
    )
    assert stored.fingerprint["recipe"].startswith("detector-36-whole-weights")


def other_architecture(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(config | {"d_model": 64, "encoder_hidden_dim": 64})
    )


def without_a_tensor(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    state.pop(next(name for name in state if "class_embed" in name))
    save_file(state, folder / "model.safetensors", {"format": "pt"})


def more_classes(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(config | {"id2label": dict.fromkeys(range(7), "x")})
    )


def broken(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"no weights")


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04cos\nsystem\n(S'true'\ntR.")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            other_architecture,
            "its weights are of another model than its config.json: .* has the shape",
        ),
        (without_a_tensor, "its weights lack .*class_embed"),
        (more_classes, "its weights are of another model than its config.json: .* has the shape"),
        (broken, "model.safetensors: not readable as weights"),
        (pickled, "pytorch_model.bin: is damaged, cut short or no file of torch.save"),
    ],
)
def test_a_damaged_folder_is_refused(damage: Any, said: str, folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    damage(tmp_path)
    with pytest.raises(InputError, match=said) as caught:
        build(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"weights": None}, "no detector is named; set the option weights"),
        (
            {"prompts": ["a dog"]},
            "a rt_detr has a list of classes of its own; leave the option prompts out",
        ),
        ({"min_boxes": 40}, "expected min_boxes <= max_boxes"),
        ({"items": "queries", "whole_image": True}, "the whole image has no query"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: dict[str, Any], said: str, folder: Path
) -> None:
    with pytest.raises(InputError, match=said):
        extractors.build("detector", {"weights": str(folder), **options}, Runtime())


def test_what_is_no_detector_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="is a clip; expected a detector of transformers, such as rf_detr"
    ):
        build(tiny_dual_encoders.clip(tmp_path / "clip"))
    with pytest.raises(InputError, match=r"no detector with .* that can be read"):
        build(tmp_path)


def test_a_photograph_of_one_pixel_is_refused(folder: Path) -> None:
    with pytest.raises(ImageError, match="1 x 1 pixels are too few"):
        build(folder).prepare(Image.new("RGB", (1, 1)))


def test_an_extraction_without_a_detector_is_refused_before_anything_is_loaded() -> None:
    assert "no detector is named" in needs.lacks("detector", {})[0]
    assert needs.lacks("detector", {"weights": "untrained", "network": "fcos_resnet50_fpn"}) == []

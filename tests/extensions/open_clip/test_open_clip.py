"""Models in OpenCLIP's format against the library's own encoders, and what is refused."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image
from resizes import Resizes
from safetensors.torch import load_file, save_file
from tiny_bert import tiny_bert
from tiny_open_clip import LIMIT, OWN, TEXT, TIMM, written

from pipeline.extensions.open_clip.encoder import OpenClip
from pipeline.foundation.parts.errors import InputError, InputWarning
from pipeline.make import dual_encoders
from pipeline.make.dual_encoders import record
from pipeline.make.dual_encoders.base import Usage

pytestmark = pytest.mark.slow

CAPTIONS = ["a red circle", "The Blue square, left of it", "green"]
LONG = " ".join(["large yellow triangle"] * 10)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("models")
    return {"own": written(place / "own", OWN), "timm": written(place / "timm", TIMM)}


def pictures() -> list[Image.Image]:
    generator = np.random.default_rng(0)
    return [
        Image.fromarray(generator.integers(0, 256, (height, width, 3), np.uint8))
        for height, width in ((40, 70), (64, 32))
    ]


@pytest.mark.specification
@pytest.mark.parametrize("name", ["own", "timm"])
@torch.inference_mode()
def test_vectors_are_the_librarys_own(folders: dict[str, Path], name: str) -> None:
    network, transform = open_clip.create_model_from_pretrained(f"local-dir:{folders[name]}")
    tokens = open_clip.get_tokenizer(f"local-dir:{folders[name]}")(CAPTIONS)
    encoder = dual_encoders.load(f"open_clip:{folders[name]}", Usage())
    images = encoder.embed_images([encoder.prepare(picture) for picture in pictures()])
    own = network.encode_image(
        torch.stack([transform(picture) for picture in pictures()]), normalize=True
    )
    np.testing.assert_allclose(images, own, atol=1e-6)
    np.testing.assert_allclose(
        encoder.embed_captions(CAPTIONS), network.encode_text(tokens, normalize=True), atol=1e-6
    )
    assert images.dtype == np.float32
    assert np.abs(images[0] - images[1]).max() > 1e-3
    squashed = dual_encoders.load(f"open_clip:{folders[name]}", Usage(preprocessing="squash"))
    assert squashed.prepare(pictures()[0])["pixel_values"].shape == (3, 32, 32)
    assert (
        np.abs(squashed.embed_images([squashed.prepare(pictures()[0])]) - images[:1]).max() > 1e-4
    )
    assert encoder.files.keys() == {"open_clip_config.json", "open_clip_model.safetensors"}


def test_older_files_are_read_as_the_library_reads_them(tmp_path: Path) -> None:
    """A bias that was not trained yet, a table that is computed, and text towers without a
    prefix.
    """
    custom = {**OWN, "custom_text": True, "init_logit_bias": -10.0}
    today = dual_encoders.load(
        f"open_clip:{written(tmp_path / 'today', custom)}", Usage()
    ).embed_captions(CAPTIONS)
    folder = written(tmp_path / "older", custom)
    tensors = load_file(folder / "open_clip_model.safetensors")
    tensors.pop("logit_bias")
    older = {name.removeprefix("text."): value.clone() for name, value in tensors.items()}
    save_file(
        {**older, "transformer.embeddings.position_ids": torch.arange(3)},
        folder / "open_clip_model.safetensors",
    )
    encoder = dual_encoders.load(f"open_clip:{folder}", Usage())
    np.testing.assert_allclose(encoder.embed_captions(CAPTIONS), today, atol=1e-6)


@pytest.mark.parametrize("size", [(20_000, 1), (1, 20_000)])
def test_a_long_image_takes_little_memory(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    encoder, resizes = (
        dual_encoders.load(f"open_clip:{folders['own']}", Usage()),
        Resizes(monkeypatch),
    )
    assert encoder.prepare(Image.new("RGB", size, "red"))["pixel_values"].shape == (3, 32, 32)
    assert resizes.most_pixels < 100 * 32 * 32


def test_it_is_used_as_asked(folders: dict[str, Path]) -> None:
    """A prompt is read with every caption; squash keeps all of an image and adds no border."""
    model = f"open_clip:{folders['own']}"
    asked, plain = (
        dual_encoders.load(model, Usage(prompt="see {}!", preprocessing="squash")),
        dual_encoders.load(model, Usage()),
    )
    np.testing.assert_array_equal(asked.embed_captions(["red"]), plain.embed_captions(["see red!"]))
    words = " ".join(["red"] * (LIMIT - 3))
    assert (asked.is_cut([words]), plain.is_cut([words])) == ([True], [False])
    stripes = Image.new("RGB", (96, 32), "white")
    stripes.paste("black", (32, 0, 64, 32))
    rows = asked.prepare(stripes)["pixel_values"][0]
    assert (rows[:, [1, 16, 30]] == torch.tensor([1.0, -1.0, 1.0])).all()


def test_captions_beyond_the_limit_are_cut_and_told(folders: dict[str, Path]) -> None:
    encoder = dual_encoders.load(f"open_clip:{folders['own']}", Usage(precision="bf16"))
    assert encoder.token_limit == LIMIT
    assert encoder.is_cut(
        ["green", LONG, " ".join(["red"] * (LIMIT - 2)), " ".join(["red"] * (LIMIT - 1))]
    ) == [False, True, False, True]
    np.testing.assert_allclose(*encoder.embed_captions([LONG, f"{LONG} and more"]), atol=1e-6)
    whole, more, other = encoder.tokens([LONG, f"{LONG} and more", "green"])
    assert whole == more != other


@pytest.mark.parametrize(
    ("text", "image", "message"),
    [
        ({"hf_model_name": "someone/model"}, {}, "text tower 'someone/model' would be downloaded"),
        ({"tokenizer_kwargs": {"trust_remote_code": True}}, {}, "asks for trust_remote_code"),
        ({"tokenizer_kwargs": {"reduction_mask": "syntax"}}, {}, "asks for reduction_mask"),
        ({}, {"timm_model_name": "hf-hub:someone/model"}, "asks for hf-hub:someone/model"),
    ],
)
def test_what_would_fetch_or_run_more_is_refused(
    folders: dict[str, Path],
    tmp_path: Path,
    text: dict[str, Any],
    image: dict[str, Any],
    message: str,
) -> None:
    (tmp_path / "open_clip_config.json").write_text(
        json.dumps(
            {
                "model_cfg": {
                    "embed_dim": 8,
                    "vision_cfg": {**OWN["vision_cfg"], **image},
                    "text_cfg": {**TEXT, **text},
                }
            }
        )
    )
    weights = "open_clip_model.safetensors"
    (tmp_path / weights).write_bytes((folders["own"] / weights).read_bytes())
    with pytest.raises(InputError, match=message):
        dual_encoders.load(f"open_clip:{tmp_path}", Usage())


def test_damaged_folders_are_refused_in_one_line(folders: dict[str, Path], tmp_path: Path) -> None:
    def refused(message: str) -> None:
        with pytest.raises(InputError, match=message) as caught:
            dual_encoders.load(f"open_clip:{tmp_path}", Usage())
        assert "\n" not in str(caught.value)

    refused("has no open_clip_config.json")
    config = tmp_path / "open_clip_config.json"
    config.write_text("{}")
    refused("is not a configuration of OpenCLIP")
    config.write_bytes((folders["own"] / config.name).read_bytes())
    refused("is missing; OpenCLIP's weights are read as safetensors only")
    weights = tmp_path / "open_clip_model.safetensors"
    weights.write_bytes((folders["own"] / weights.name).read_bytes()[:-100])
    refused("not readable as weights")
    weights.write_bytes((folders["timm"] / weights.name).read_bytes())
    refused("tensors are in one alone, such as ")
    weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 605\n")
    refused("open_clip_model.safetensors: is a pointer of Git LFS")
    weights.unlink()
    weights.symlink_to("../.git/annex/objects/a/b")
    refused("open_clip_model.safetensors: is a link of git-annex")


def test_a_tokenizer_of_another_model_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["own"], tmp_path / "model")
    config = json.loads((folder / "open_clip_config.json").read_text())
    config["model_cfg"]["text_cfg"]["hf_tokenizer_name"] = "someone/bert"
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    tiny_bert(tmp_path / "bert")
    for file in (tmp_path / "bert").glob("tokenizer*"):
        shutil.copy(file, folder)
    with pytest.raises(InputError, match="tokenizer of 26 word pieces for a network of 49408"):
        dual_encoders.load(f"open_clip:{folder}", Usage())


def test_a_network_of_fewer_word_pieces_than_its_tokenizer_has_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", {**OWN, "text_cfg": {**TEXT, "vocab_size": 100}})
    with pytest.raises(InputError, match="does not take the captions that its tokenizer reads"):
        dual_encoders.load(f"open_clip:{folder}", Usage())


@pytest.mark.parametrize(
    ("stated", "half", "activation", "noted"),
    [
        ({}, False, "GELU", False),
        ({"quick_gelu": True}, False, "QuickGELU", False),
        ({}, True, "GELU", True),
        ({"quick_gelu": True}, True, "QuickGELU", False),
        ({"quick_gelu": False}, True, "GELU", False),
    ],
)
def test_the_activation_is_recorded_and_openais_weights_need_quick_gelu(
    tmp_path: Path, stated: dict[str, bool], half: bool, activation: str, noted: bool
) -> None:
    """OpenAI published numbers of half precision."""
    folder = written(tmp_path / "model", {**OWN, **stated})
    if half:
        file = folder / "open_clip_model.safetensors"
        save_file({name: value.half().float() for name, value in load_file(file).items()}, file)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", InputWarning)
        encoder = dual_encoders.load(f"open_clip:{folder}", Usage())
    reported = [str(one.message) for one in said if issubclass(one.category, InputWarning)]
    assert ['set "quick_gelu": true in model_cfg' in one for one in reported] == [True] * noted
    found = record.described(f"open_clip:{folder}", encoder, None)
    assert found["activation"] == {"image": activation, "text": activation}
    assert {"mean", "std", "interpolation", "resize_mode", "size"} <= found["preprocessing"].keys()
    assert found["token_limit"] == LIMIT


def test_captions_are_padded_to_the_networks_length_as_their_tokenizer_pads() -> None:
    def tokenizer(captions: list[str], context_length: int) -> torch.Tensor:
        return torch.full((len(captions), context_length), 5)

    for padding, filler in ((SimpleNamespace(pad_token_id=1), 1), (None, 0)):
        if padding is not None:
            tokenizer.tokenizer = padding  # type: ignore[attr-defined]
        elif hasattr(tokenizer, "tokenizer"):
            del tokenizer.tokenizer
        encoder: Any = SimpleNamespace(usage=Usage(), tokenizer=tokenizer, token_limit=3, _padded=5)
        assert OpenClip._tokens(encoder, ["a"]).tolist() == [[5, 5, 5, filler, filler]]


def test_each_interpolation_resizes_in_its_own_way(folders: dict[str, Path]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (90, 70, 3), np.uint8)
    prepared = []
    for interpolation in ("bilinear", "bicubic"):
        usage = Usage(interpolation=interpolation, preprocessing="squash")  # type: ignore[arg-type]
        encoder = dual_encoders.load(f"open_clip:{folders['own']}", usage)
        (resize, *_) = encoder.transform.transforms  # type: ignore[attr-defined]
        assert resize.interpolation.value == interpolation
        prepared.append(encoder.prepare(Image.fromarray(pixels))["pixel_values"])
    assert not torch.equal(*prepared)

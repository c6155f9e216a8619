"""#OIPs: multiples of the row that the paper has at 1.0×."""

from __future__ import annotations

from typing import Any

import pytest
from invented import built, system, texts

from pipeline.foundation.parts.errors import InputError


def test_throughput_is_relative_to_the_row_that_the_paper_has_at_one() -> None:
    measured = system("coco", "coco_5k") | system("coco", "coco_5k", recipe="vse2ad-gcn")
    rates = {"vse2ad": 98.0, "vse2ad-gcn": 20.0, "vse2ad-lip": 10.0}
    timed = {"poolings": rates, "methods": {"poolings": "Forward pass."}}
    panel = built("vse2ad_table4", measured, throughput=timed).panels[0]
    assert {row[0]: row[-1] for row in texts(panel)[9:]} == {"AdPool": "4.9×", "GCN": "1.0×"}
    assert panel.made_from[-1] == "#OIPs: multiples of vse2ad-gcn. Forward pass."


def test_without_the_papers_base_there_are_no_ratios() -> None:
    timed = {
        "poolings": {"vse2ad": 98.0, "vse2ad-lip": 10.0},
        "methods": {"poolings": "Forward pass."},
    }
    panel = built("vse2ad_table4", system("coco", "coco_5k"), throughput=timed).panels[0]
    assert texts(panel)[-1][-1] == "–"


def test_times_of_a_busy_machine_are_marked() -> None:
    measured = system("coco", "coco_5k", recipe="vse2ad-gcn")
    timed = {"poolings": {"vse2ad-gcn": 10.0}, "methods": {"poolings": ""}}
    quiet, busy = (
        built("vse2ad_table4", measured, throughput=timed | {"busy": busy}).panels[0]
        for busy in (False, True)
    )
    assert [note.text for note in busy.notes if note not in quiet.notes] == [
        "#OIPs: other work ran on the machine while measured rows were timed; time them again."
    ]


@pytest.mark.parametrize(("text", "rsum"), [("bigru", "VSE+2AD (BiGRU)"), ("bert", "VSE+2AD")])
def test_no_measured_row_has_the_oips_of_a_model_that_is_not_timed(text: str, rsum: str) -> None:
    features = {"region": "butd", "grid": "butd", "patch": "vit_base_patch16_224"}
    measured = system("coco", "coco_5k", ensemble="RGP", features=features, text=text)
    timed = {"poolings": {"vse2ad": 98.0, "vse2ad-gcn": 20.0}, "methods": {"poolings": ""}}
    row = texts(built("vse2ad_table2", measured, throughput=timed).panels[0])[-1]
    assert (row[0], row[-1]) == (rsum, "–")


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_impossible_throughput_is_refused(rate: float) -> None:
    with pytest.raises(InputError, match="throughput of 'vse2ad'"):
        built(
            "vse2ad_table4",
            {},
            throughput={"poolings": {"vse2ad": rate}, "methods": {"poolings": ""}},
        )


@pytest.mark.parametrize("timed", [{"poolings": {"vse2ad": "fast"}}, {"methods": {"poolings": ""}}])
def test_throughput_that_cannot_be_read_is_refused(timed: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="run `pipeline lab throughput` again"):
        built("vse2ad_table4", {}, throughput=timed)

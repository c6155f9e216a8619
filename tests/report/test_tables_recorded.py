"""Tables 5 and 6 of Geigle et al.: larger pools and zero-shot retrieval, from
results/recorded.json.
"""

from __future__ import annotations

from typing import Any

import pytest
from invented import built, system, texts

from pipeline.foundation.parts.errors import InputError

OTHER = {"dataset": "flickr8k", "split": "train+val", "images": 6000, "captions": 30000}


def recorded(
    dataset: str, protocol: str, trained_on: str, distractors: list[dict[str, Any]], **asked: Any
) -> dict[str, Any]:
    """An entry of results/recorded.json."""
    ((name, entry),) = system(dataset, protocol, **asked).items()
    entry["record"]["facts"] |= {"trained_on": trained_on}
    entry["record"]["request"]["distractors"] = distractors
    return {f"{name} {len(distractors)}": entry}


def measured_rows(name: str, metrics: dict[str, Any], beyond: dict[str, Any]) -> list[list[str]]:
    table = built(name, metrics, recorded=beyond)
    return [
        [cell.text for cell in row.cells]
        for panel in table.panels
        for group in panel.groups
        for row in group.rows
        if row.sources
    ]


def test_larger_pools_stand_apart_and_say_what_was_added() -> None:
    beyond = recorded(
        "flickr30k", "enlarged", "flickr30k", [OTHER], images=7000, captions=35000, r1=20.0
    )
    beyond |= recorded("coco", "coco_5k", "flickr30k", [])
    assert measured_rows("rerank_table5", system("flickr30k", "flickr30k_1k"), beyond) == [
        [
            "VSE+2AD (Region, BiGRU)",
            "6,000 images and 30,000 captions of Flickr8k",
            *["20.0", "25.0", "30.0"] * 2,
        ]
    ]
    published, mine = built("rerank_table5", {}, recorded=beyond).panels
    assert texts(published)[2][1:4] == ["55.9", "77.5", "82.9"]
    assert [
        [column.heading for column in panel.columns if column.kind == "text"]
        for panel in (published, mine)
    ] == [["Method"], ["Method", "Distractors"]]  # the paper's stand in its headings
    assert "7,000 images, 35,000 captions" in mine.caption


def test_zero_shot_systems_stand_beside_those_trained_on_the_same_data() -> None:
    beyond = recorded("flickr30k", "flickr30k_1k", "coco", [], r1=40.0)
    beyond |= recorded("flickr30k", "enlarged", "coco", [OTHER])
    metrics = (
        system("flickr30k", "flickr30k_1k", r1=60.0)
        | system("flickr30k", "flickr30k_1k", recipe="vse_infty")
        | system("coco", "coco_5k")
    )
    rows = [[*row[:2], row[8]] for row in measured_rows("rerank_table6", metrics, beyond)]
    assert rows == [
        ["on the same", "VSE+2AD (Region, BiGRU)", "60.0"],
        ["on MS-COCO", "VSE+2AD (Region, BiGRU)", "40.0"],
    ]
    table = built("rerank_table6", metrics, recorded=beyond)
    every = [row for panel in table.panels for group in panel.groups for row in group.rows]
    assert not any(
        cell.bold for row in every if row.cells[0].text == "on the same" for cell in row.cells
    )
    assert any(
        cell.bold for row in every if row.cells[0].text == "on another" for cell in row.cells
    )
    (mine,) = (row for row in every if row.cells[0].text == "on MS-COCO")
    assert not any(cell.bold for cell in mine.cells)  # a bound is no competitor


def test_dual_encoders_stand_among_the_zero_shot_systems() -> None:
    ((name, entry),) = system("flickr30k", "flickr30k_1k", recipe="clip", ensemble=None).items()
    facts = entry["record"]["facts"]
    same = ("dataset", "split", "manifest", "languages", "lacks")
    of_encoder = {"head": "clip", "encoder": {"title": "CLIP ViT-B/32"}}
    entry["record"]["facts"] = {
        "kind": "encoder",
        "member": of_encoder,
        **{key: facts[key] for key in same},
    }
    (row,) = measured_rows("rerank_table6", {name: entry}, {})
    assert (row[1], row[8]) == ("CLIP ViT-B/32, zero-shot", "50.0")


def test_a_head_on_its_own_data_is_not_zero_shot() -> None:
    beyond = recorded("flickr30k", "flickr30k_1k", "flickr30k", [])
    assert measured_rows("rerank_table6", {}, beyond) == []


@pytest.mark.parametrize("name", ["rerank_table1", "vse2ad_table1", "rerank_table8"])
def test_no_other_table_shows_them(name: str) -> None:
    beyond = recorded("flickr30k", "flickr30k_1k", "coco", []) | recorded(
        "flickr30k", "enlarged", "coco", [OTHER]
    )
    assert measured_rows(name, {}, beyond) == []


def test_distractors_of_another_form_are_refused() -> None:
    with pytest.raises(InputError, match="does not say what made it"):
        built(
            "rerank_table5", {}, recorded=recorded("coco", "enlarged", "coco", [{"dataset": "cc"}])
        )

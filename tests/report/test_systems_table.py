"""The table of all systems, and what is said of those that no paper's table has."""

from __future__ import annotations

from typing import Any

import pytest
from invented import built, read_metrics, system, texts

from pipeline.run.report.measured import Results
from pipeline.run.report.tables import TABLES
from pipeline.run.report.tables.systems import unlisted

OWN = "vse_infty-softpool"


def test_every_system_has_a_row_by_test_set_and_protocol() -> None:
    entries = (
        system("coco", "coco_5k")
        | system("coco", "coco_1k_5fold", recipe=OWN)
        | system("flickr8k", "all")
    )
    beyond = system("flickr30k", "flickr30k_1k", recipe="my_own")
    panels = built("systems", entries, recorded=beyond).panels
    assert [(panel.key, [row[0] for row in texts(panel)]) for panel in panels] == [
        ("coco", ["VSE+2AD (Region, BiGRU)"]),
        ("coco", ["VSE∞, SoftPool pooling (Region, BiGRU)"]),
        ("flickr8k", ["VSE+2AD (Region, BiGRU)"]),
        ("flickr30k", ["my_own (Region, BiGRU)"]),
    ]
    assert (
        "on MS-COCO (test split, 1,000 images, 5,000 captions, protocol coco_1k_5fold) in"
        in panels[1].caption
    )
    assert texts(panels[0])[0][1:] == ["50.0", "55.0", "60.0"] * 2 + ["330.0"]


def test_systems_of_other_manifests_and_pools_do_not_stand_in_one_panel() -> None:
    """Nor compete for bold: one data set cut in two ways, and a pool with distractors."""
    distractors = {"dataset": "flickr8k", "split": "test", "images": 500, "captions": 2500}
    beyond: dict[str, Any] = {}
    for count, r1 in ((0, 40.0), (1, 30.0), (2, 20.0)):
        pool = {"images": 1000 + 500 * count, "captions": 5000 + 2500 * count}
        for name, entry in system("mine", "enlarged", r1=r1, **pool).items():
            entry["record"]["request"]["distractors"] = [distractors] * count
            beyond[f"{name} {count}"] = entry
    other = {
        f"{name} again": entry
        for name, entry in system("mine", "enlarged", r1=10.0, manifest="other").items()
    }
    panels = built("systems", other, recorded=beyond).panels
    assert [texts(panel)[0][1] for panel in panels] == ["10.0", "40.0", "30.0", "20.0"]
    assert [len(texts(panel)) for panel in panels] == [1, 1, 1, 1]


def test_a_system_of_which_a_seed_is_in_a_table_is_not_called_unlisted() -> None:
    """Seeds are one system, whose row names them all."""
    entries = system("coco", "coco_5k") | system("coco", "coco_5k", seed=1)
    results = Results(read_metrics(entries))
    shown = built("vse2ad_table3", system("coco", "coco_5k"))
    assert dict(unlisted(results, {"vse2ad_table3": shown})) == {}
    none = dict(unlisted(results, {"vse2ad_table2": built("vse2ad_table2", {})}))
    assert list(none) == ["vse2ad-R-bigru-s0 coco", "vse2ad-R-bigru-s1 coco"]
    assert len(set(none.values())) == 1


@pytest.mark.slow
def test_a_system_in_no_papers_table_is_named_with_the_reason() -> None:
    entries = (
        system("coco", "coco_5k")
        | system("coco", "coco_5k", recipe=OWN)
        | system("coco", "coco_5k", recipe="vse2ad-noadopt")
    )
    results = Results(read_metrics(entries))
    shown = {
        name: built(name, entries) for name in ("vse2ad_table2", "vse_infty_table10", "systems")
    }
    said = dict(unlisted(results, shown))
    assert said == {
        f"{OWN}-R-bigru-s0 coco": "no table has the variation VSE∞, SoftPool pooling",
        "vse2ad-noadopt-R-bigru-s0 coco": "vse2ad_table3 would have it, and the settings do not list them",
    }
    every = {name: built(name, entries) for name in TABLES}
    assert [name for name, _ in unlisted(results, every)] == [f"{OWN}-R-bigru-s0 coco"]

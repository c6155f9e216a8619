"""The table of all systems, and what is said of those that no paper's table has."""

from __future__ import annotations

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

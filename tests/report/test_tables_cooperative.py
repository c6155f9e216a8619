"""Tables 1, 9 and 10 of Geigle et al.: cross-encoders stand by the part that they play, others by
their names.
"""

from __future__ import annotations

from typing import Any

import invented_facts
import pytest
from invented import built, system, texts

from pipeline.run.report.tables.rerank import loss


def cross(
    recipe: str, tasks: list[str], scorer: list[str] | None = None, k: Any = 20, **settings: Any
) -> dict[str, Any]:
    """A cross-encoder on Flickr30K; reranked by one with the tasks `scorer`, or by itself if these
    are its own.
    """
    settings = {
        "architecture": {"name": "cross"},
        "tasks": tasks,
        "objective": {"name": "triplet"},
    } | settings
    ((name, entry),) = system(
        "flickr30k",
        "flickr30k_1k",
        recipe=recipe,
        text="bert",
        ensemble=None,
        r1=60.0,
        settings=settings,
    ).items()
    made_from = entry["record"]["facts"]
    if scorer:
        members = [made_from["member"]]
        if scorer != tasks:
            members.append(
                {**members[0], "head": "other", "settings": {**settings, "tasks": scorer}}
            )
        by = invented_facts.reranked(made_from, "other-region-bert", k, members=members)
        entry["record"]["facts"] = by.recorded()
    return {f"{name} {tasks} {scorer} {k}": entry}


EVERY = (
    cross("emb", ["emb"])
    | cross("ce", ["ce"])
    | cross("join", ["emb", "ce"])
    | cross("emb", ["emb"], ["ce"])
    | cross("join", ["emb", "ce"], ["emb", "ce"])
    | cross("join", ["emb", "ce"], ["emb", "ce"], k="all")
    | system("flickr30k", "flickr30k_1k", recipe="vse_infty")
)


def test_main_results_name_the_parts_and_stand_in_the_papers_groups() -> None:
    (panel,) = built("rerank_table1", EVERY).panels
    assert [group.title for group in panel.groups][3:] == [
        "Measured here: G1: before Transformers",
        "Measured here: G2: cross-encoders",
        "Measured here: G3: embeddings, and cooperative",
    ]
    names = [row.cells[0].text for group in panel.groups for row in group.rows if row.sources]
    assert names == [
        "VSE∞ (Region, BiGRU)",
        "CE (ce, Region, BERT)",
        "EMB (emb, Region, BERT)",
        "JOIN+EMB (join, Region, BERT)",
        "SEP+CO (emb, Region, BERT), rerank (with other-region-bert, k 20)",
        "JOIN+CO (join, Region, BERT), rerank (with other-region-bert, k 20)",
        "JOIN+CE (join, Region, BERT), rerank (with other-region-bert, k all)",
    ]


def test_published_main_results_say_where_they_are_from() -> None:
    (panel,) = built("rerank_table1", {}).panels
    assert [row[0] for row in texts(panel)][7:9] == [
        "CE (OSCAR), from the literature",
        "CE (OSCAR), their own run",
    ]
    assert [group.title for group in panel.groups] == [
        "G1: before Transformers",
        "G2: cross-encoders",
        "G3: embeddings, and cooperative",
    ]


@pytest.mark.parametrize(
    ("settings", "loss"),
    [
        ({}, "T^BHE + E"),
        ({"pairs": {"hard": 0.05}}, "T^BHE + E^ANCE"),
        ({"pairs": {"objective": "listwise", "hard": 1.0}}, "T^BHE + listwise^ANCE"),
        ({"objective": {"name": "infonce"}}, "infonce + E"),
    ],
)
def test_joint_networks_stand_by_what_they_learnt_by(settings: dict[str, Any], loss: str) -> None:
    both = ["emb", "ce"]
    every = EVERY | cross("mine", both, both, **settings)
    (panel,) = built("rerank_table10", every).panels
    mine = [
        row.cells[0].text
        for group in panel.groups
        for row in group.rows
        if row.sources and "(mine," in row.cells[1].text
    ]
    assert mine == [loss]


def test_embeddings_alone_stand_in_table_9() -> None:
    (panel,) = built("rerank_table9", EVERY).panels
    mine = [
        [cell.text for cell in row.cells][:2]
        for group in panel.groups
        for row in group.rows
        if row.sources
    ]
    assert mine == [["T^BHE", "EMB (emb, Region, BERT)"]]


@pytest.mark.parametrize(
    ("scorer", "label"),
    [
        ({"kind": "cross", "checkpoint": "another"}, "SEP+CO (emb"),
        ({"kind": "blip"}, "SEP+CO (emb"),
        ({"kind": "cross"}, "JOIN+CO (emb"),
    ],
)
def test_a_head_that_scores_pairs_is_told_from_the_retrievers_own(
    scorer: dict[str, Any], label: str
) -> None:
    found = cross("emb", ["emb"], ["emb"])
    ((_name, entry),) = found.items()
    own = entry["record"]["facts"]["members"][0]["checkpoint"]
    by = ({"checkpoint": own} if scorer["kind"] == "cross" else {}) | scorer
    entry["record"]["facts"]["scorer"] |= by
    (panel,) = built("rerank_table1", found).panels
    (row,) = (row for group in panel.groups for row in group.rows if row.sources)
    assert row.cells[0].text.startswith(label)


def test_the_loss_of_near_negatives_is_named() -> None:
    joint = {
        "architecture": {"name": "cross"},
        "tasks": ["emb", "ce", "ance", "ce"],
        "objective": {"name": "triplet"},
    }
    assert loss(joint) == "T^BHE + T^ANCE + E"
    assert loss(joint | {"pairs": {"hard": 0.05}}) == "T^BHE + T^ANCE + E^ANCE"
    assert loss(joint | {"tasks": ["emb", "ance"]}) == "T^BHE + T^ANCE"


def test_a_reranked_head_on_bigru_is_cooperative() -> None:
    """It stands in the group of what it is now, not of its text encoder."""
    ((name, entry),) = system("flickr30k", "flickr30k_1k", recipe="vse_infty").items()
    alone = {name: entry}
    ((name, entry),) = system("flickr30k", "flickr30k_1k", recipe="vse_infty").items()
    made = invented_facts.reranked(entry["record"]["facts"], "another")
    entry["record"]["facts"] = made.recorded()
    for metrics, group in (
        (alone, "Measured here: G1: before Transformers"),
        ({f"{name}+rr": entry}, "Measured here: G3: embeddings, and cooperative"),
    ):
        (panel,) = built("rerank_table1", metrics).panels
        titles = [group.title for group in panel.groups for row in group.rows if row.sources]
        assert titles == [group]

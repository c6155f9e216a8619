"""Tables 8 and 11 of Geigle et al.: published beside measured, cells in doubt marked."""

from __future__ import annotations

from typing import Any

import invented_facts
import pytest
from invented import built, system

from pipeline.judge.tables import latex
from pipeline.judge.tables.table import MISSING, Panel


def measured(
    dataset: str = "flickr30k", protocol: str = "flickr30k_1k", **step: Any
) -> dict[str, Any]:
    """A system that was reranked by another, at 60, 65, 70 both ways."""
    ((name, entry),) = system(dataset, protocol, r1=60.0).items()
    facts: dict[str, Any] = {"k": step["k"]}
    if "add" in step:
        facts |= {"combine": "add", "weight": step["add"]}
    made = invented_facts.reranked(entry["record"]["facts"], "vse2ad-RGP-bigru", **facts)
    entry["record"]["facts"] = made.recorded()
    return {f"{name}+{step}": entry}


def rows(panel: Panel) -> dict[tuple[str, ...], list[str]]:
    labels = sum(column.kind == "text" for column in panel.columns)
    return {
        tuple(cell.text for cell in row.cells[:labels]): [cell.text for cell in row.cells[labels:]]
        for group in panel.groups
        for row in group.rows
    }


def test_k_and_sums_stand_beside_the_papers() -> None:
    every = measured(k=20) | measured(k=50, add=0.25) | system("flickr30k", "flickr30k_1k")
    (eight,) = built("rerank_table8", every).panels
    mine = {label: cells for label, cells in rows(eight).items() if "BiGRU" in label[1]}
    assert mine == {
        ("20", "VSE+2AD (Region, BiGRU), rerank (with vse2ad-RGP-bigru, k 20)"): [
            *[MISSING] * 12,
            *["60.0", "65.0", "70.0"] * 2,
        ]
    }
    (eleven,) = built("rerank_table11", every).panels
    assert [label[:2] for label in rows(eleven) if "BiGRU" in label[2]] == [
        ("scorer alone", "0.0"),
        ("ADD", "0.25"),
    ]


@pytest.mark.parametrize(
    ("name", "sure", "doubted"),
    [
        ("rerank_table8", ("20", "SEP+CO (OSCAR)"), ("10", "SEP+CO (OSCAR)")),
        ("rerank_table11", ("ADD", "0.1", "SEP+CO (OSCAR)"), ("NORM_ADD", "0.1", "SEP+CO (OSCAR)")),
    ],
)
def test_cells_in_doubt_are_marked(
    name: str, sure: tuple[str, ...], doubted: tuple[str, ...]
) -> None:
    (panel,) = built(name, {}).panels
    marked = {
        tuple(cell.text for cell in row.cells[: len(sure)]): [
            bool(cell.marks) for cell in row.cells
        ]
        for group in panel.groups
        for row in group.rows
    }
    assert any(marked[doubted])
    assert not any(marked[sure])
    assert "in doubt" in latex.to_latex(built(name, {}))

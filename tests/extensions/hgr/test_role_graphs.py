"""HGR's file of role graphs: what is kept of it, and what is refused."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from pipeline.extensions.hgr import role_graphs
from pipeline.foundation.manifest import text_file
from pipeline.foundation.parts.errors import InputError

pytestmark = pytest.mark.slow

CAPTION = "a dog runs along the beach"
NODES = {
    "ROOT": {"role": "ROOT", "spans": [0, 1, 2, 3, 4, 5], "words": CAPTION.split()},
    "1": {"role": "V", "spans": [2], "words": ["runs"]},
    "2": {"role": "ARG0", "spans": [1, 0], "words": ["dog", "a"]},
    "3": {"role": "ARGM-LOC", "spans": [3, 4, 5]},
}
EDGES = [["1", "2", "ARG0"], ["1", "3", "ARGM-LOC"]]


def written(folder: Path, tree: Any) -> Path:
    path = folder / "graphs.json"
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path


@pytest.mark.specification
def test_a_graph_is_its_phrases_and_edges(tmp_path: Path) -> None:
    path = written(tmp_path, {CAPTION: [NODES, EDGES], "another": [{}, []]})
    found = role_graphs.read(path, [CAPTION, "silence", CAPTION, "another"])
    assert found == [
        '[[["V",[2]],["ARG0",[0,1]],["ARGM-LOC",[3,4,5]]],[[0,1],[0,2]]]',
        "",
        found[0],
        "[[],[]]",
    ]


def test_letters_that_are_written_in_two_ways_are_one(tmp_path: Path) -> None:
    composed, decomposed = "ein H\u00fcndchen", "ein Hu\u0308ndchen"
    for there, asked in ((composed, decomposed), (decomposed, composed)):
        path = written(tmp_path, {there: [{"1": {"role": "NOUN", "spans": [1]}}, []]})
        assert role_graphs.read(path, [asked]) == ['[[["NOUN",[1]]],[]]']


def test_of_a_caption_that_is_there_twice_the_last_graph_counts(tmp_path: Path) -> None:
    """As in a dict of Python, whichever way its letters are written."""
    path = tmp_path / "graphs.json"
    first, last = ([{"1": {"role": role, "spans": [0]}}, []] for role in ("V", "NOUN"))
    for names in ("a", "a"), ("Hu\u0308ndchen", "H\u00fcndchen"):
        path.write_text(
            "{"
            + ", ".join(
                f"{json.dumps(name)}: {json.dumps(graph)}"
                for name, graph in zip(names, (first, last), strict=True)
            )
            + "}"
        )
        for name in names:
            assert role_graphs.read(path, [name]) == ['[[["NOUN",[0]]],[]]']


def test_a_long_file_is_read_entry_by_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_file, "PART", 1 << 14)
    path = written(tmp_path, {f"{CAPTION} {number}": [NODES, EDGES] for number in range(2000)})
    tracemalloc.start()
    found = role_graphs.read(path, [f"{CAPTION} 7", "silence", f"{CAPTION} 1999"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found[0], found[1]) == (found[2], "")
    assert peak < path.stat().st_size / 4


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([], "expected a role graph for each caption"),
        ({CAPTION: {}}, r"is not \[nodes, edges\]"),
        ({CAPTION: [NODES]}, r"is not \[nodes, edges\]"),
        (
            {CAPTION: [{str(n): NODES["1"] for n in range(300)}, []]},
            "has 300 nodes and 0 edges; expected at most 256",
        ),
        ({CAPTION: [{"1": {"spans": [2]}}, []]}, "has a node '1' without a role"),
        (
            {CAPTION: [{"1": {"role": "\x1b[2J", "spans": [2]}}, []]},
            "has a node '1' without a role",
        ),
        (
            {CAPTION: [{"1": {"role": "V", "spans": [6]}}, []]},
            "whose spans are not places of the caption's 6 words",
        ),
        ({CAPTION: [{"1": {"role": "V", "spans": [-1]}}, []]}, "whose spans are not places"),
        ({CAPTION: [{"1": {"role": "V", "spans": [True]}}, []]}, "whose spans are not places"),
        ({CAPTION: [{"1": {"role": "V", "spans": []}}, []]}, "whose spans are not places"),
        (
            {CAPTION: [NODES, [["1", "9", "ARG0"]]]},
            "has an edge from '1' to '9', and no such nodes",
        ),
        (
            {CAPTION: [NODES, [["ROOT", "1", "V"]]]},
            "has an edge from 'ROOT' to '1', and no such nodes",
        ),
        (
            {CAPTION: [NODES, [["1", "1", "V"]]]},
            "has an edge from '1' to '1'; expected one from a verb",
        ),
        (
            {CAPTION: [NODES, [["2", "3", "ARG0"]]]},
            "has an edge from '2' to '3'; expected one from a verb",
        ),
        ({CAPTION: [NODES, [["1"]]]}, "has an edge that is not"),
        ({CAPTION: [NODES, [[1, 2, "ARG0"]]]}, "has an edge that is not"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(tmp_path: Path, tree: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        role_graphs.read(written(tmp_path, tree), [CAPTION])
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "graphs.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="not readable as JSON"):
        role_graphs.read(tmp_path / "graphs.json", [])
    with pytest.raises(InputError, match="no such annotation file"):
        role_graphs.read(tmp_path / "none.json", [])

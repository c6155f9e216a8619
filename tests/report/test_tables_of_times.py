"""Tables 3 and 4 of Geigle et al.: times from rates, and what is extrapolated is marked."""

from __future__ import annotations

from typing import Any

import pytest
from invented import built

from pipeline.foundation.parts.errors import InputError
from pipeline.judge.tables import latex
from pipeline.judge.tables.table import TableRequest
from pipeline.run.report.tables.times_and_errors import printed_time
from pipeline.run.report.throughput import Latency, scored_pairs

TIMED: dict[str, Any] = {
    "latency": {
        "images_per_second": 1000.0,
        "encode": 0.002,
        "search": {"50000": 0.003, "1000000": 0.038},
        "pairs": 20,
        "rerank": 0.1,
    },
    "poolings": {},
    "methods": {"latency": "On a machine that was invented."},
    "busy": False,
    "made_with": {"machine": "2 CPU threads"},
}


def measured(name: str, timed: dict[str, Any] = TIMED) -> list[list[tuple[str, tuple[str, ...]]]]:
    (panel,) = built(name, {}, TableRequest(rows="measured"), timed).panels
    return [
        [(cell.text, cell.marks) for cell in row.cells[2:]]
        for group in panel.groups
        for row in group.rows
    ]


def test_a_query_is_measured_but_for_the_cross_encoder() -> None:
    assert measured("rerank_table3") == [
        [("5.0\xa0ms", ()), ("40\xa0ms", ())],
        [("105\xa0ms", ("*",)), ("140\xa0ms", ("*",))],
        [("4.2\xa0min", ("*",)), ("83\xa0min", ("*",))],
    ]  # 250 s and 5,000 s: 5 ms a pair


def test_an_evaluation_is_extrapolated_from_its_pairs() -> None:
    embeddings, together, alone = measured("rerank_table4")
    assert {mark for row in (embeddings, together, alone) for _, mark in row} == {("*",)}
    assert embeddings[0] == (
        "11\xa0s",
        ("*",),
    )  # 1,000 images, 5,000 captions, 10 million similarities
    assert together[0] == ("10\xa0min", ("*",))  # 120,000 pairs at 5 ms, and that
    assert alone[0] == ("6.9\xa0h", ("*",))  # 5,000,000 pairs at 5 ms
    (panel,) = built("rerank_table4", {}, TableRequest(rows="measured"), TIMED).panels
    assert any("one at a time, the paper's in batches of 512" in note.text for note in panel.notes)
    assert [scored_pairs(method, 1000) for method in ("EMB", "SEP/JOIN+CO", "CE")] == [
        0,
        120_000,
        5_000_000,
    ]


def test_an_evaluation_searches_in_both_directions() -> None:
    """1,000 images: 1 s to embed them, 10 s for 5,000 captions, and two searches of 5 s each."""
    latency = Latency.model_validate(
        {
            "images_per_second": 1000,
            "encode": 0.002,
            "search": {"100": 0.5, "1000": 0.001},
            "pairs": 20,
            "rerank": 0.1,
        }
    )
    for method, seconds in (("EMB", 21), ("SEP/JOIN+CO", 21 + 600), ("CE", 25_000)):
        found, is_extrapolated = latency.of_evaluation(method, 1000)
        assert (found, is_extrapolated) == (pytest.approx(seconds), True), method


def test_published_times_keep_their_marks_beside_measured_ones() -> None:
    (panel,) = built("rerank_table3", {}, throughput=TIMED).panels
    rows = {
        tuple(cell.text for cell in row.cells[:2]): row.cells[2:]
        for group in panel.groups
        for row in group.rows
    }
    assert [cell.text for cell in rows["EMB", "NVIDIA V100"]] == ["16\xa0ms", "37\xa0ms"]
    assert [(cell.text, cell.marks) for cell in rows["SEP/JOIN+CO", "CPU"]] == [
        ("6\xa0s", ("a",)),
        ("13\xa0s", ("b",)),
    ]
    assert ("EMB (BiGRU)", "2 CPU threads") in rows  # the paper's EMB is a Transformer
    (four,) = built("rerank_table4", {}).panels
    assert [cell.marks for cell in four.groups[0].rows[2].cells] == [(), (), (), (), ("*",)]


@pytest.mark.parametrize("name", ["rerank_table3", "rerank_table4"])
def test_without_times_only_published_rows_are_there(name: str) -> None:
    assert built(name, {}, TableRequest(rows="measured"), {"poolings": {}}).panels == ()
    assert "Measured" not in latex.to_latex(built(name, {}))


@pytest.mark.parametrize(
    "change", [{"encode": 0.0}, {"search": {}}, {"rerank": "slow"}, {"images_per_second": 0}]
)
def test_times_that_are_none_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="run `pipeline lab throughput` again"):
        measured("rerank_table3", {**TIMED, "latency": {**TIMED["latency"], **change}})


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.016, "16\xa0ms"),
        (0.0012, "1.2\xa0ms"),
        (1.6, "1.6\xa0s"),
        (74.0, "74\xa0s"),
        (2160.0, "36\xa0min"),
        (8640.0, "2.4\xa0h"),
        # At most two digits: what 10.0 would round to is 10.
        (0.00994, "9.9\xa0ms"),
        (0.00996, "10\xa0ms"),
        (9.94, "9.9\xa0s"),
        (9.97, "10\xa0s"),
        # The next unit from 2 min, 2 h, 3 d and 1 a on.
        (0.9999, "1,000\xa0ms"),
        (1.0, "1.0\xa0s"),
        (119.4, "119\xa0s"),
        (120.0, "2.0\xa0min"),
        (7194.0, "120\xa0min"),
        (7200.0, "2.0\xa0h"),
        (259000.0, "72\xa0h"),
        (259200.0, "3.0\xa0d"),
        (31557600.0, "1.0\xa0a"),
        (169200.0, "47\xa0h"),
        (72582480.0, "2.3\xa0a"),
    ],
)
def test_times_are_printed_as_in_the_paper(seconds: float, text: str) -> None:
    assert printed_time(seconds) == text


def test_a_query_with_models_of_the_run_is_told() -> None:
    query = {
        "retriever": "a",
        "scorer": "b",
        "images": 1000,
        "k": 20,
        "retrieve": 0.002,
        "both": 0.05,
        "ratio": 25.0,
    }
    (panel,) = built(
        "rerank_table3", {}, TableRequest(rows="measured"), TIMED | {"query": query}
    ).panels
    assert any(
        "1,000 images takes 2.0\xa0ms by a, and 50\xa0ms with its best 20 reranked by b: 25.0 times"
        in note.text
        for note in panel.notes
    )


def test_times_of_a_busy_machine_are_said_to_be_so() -> None:
    for busy, said in ((True, True), (False, False), (None, False)):
        for name in ("rerank_table3", "rerank_table4"):
            (panel,) = built(
                name, {}, TableRequest(rows="measured"), {**TIMED, "busy": busy}
            ).panels
            notes = [note.text for note in panel.notes]
            assert ("Other work ran on the machine meanwhile; time it again." in notes) == said


def test_extrapolated_times_have_one_note_whoever_extrapolated_them() -> None:
    for name in ("rerank_table3", "rerank_table4"):
        for timed, rows, said in (
            (TIMED, "all", "Extrapolated. "),
            (TIMED, "measured", "Extrapolated. "),
            (TIMED, "published", "Extrapolated, of published rows by the authors."),
            (None, "all", "Extrapolated, of published rows by the authors."),
        ):
            (panel,) = built(name, {}, TableRequest(rows=rows), timed).panels  # type: ignore[arg-type]
            marked = [note.text for note in panel.notes if note.mark == "*"]
            if name == "rerank_table3" and said.endswith("authors."):
                assert marked == []  # the paper measured all of them
                continue
            assert len(marked) == 1, (name, rows)
            assert marked[0].startswith(said), (name, rows)

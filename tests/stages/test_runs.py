"""Run files: what is written is measured alike by other tools and by ourselves; runs that are none
are refused.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pytest

from pipeline.foundation.manifest import Manifest

pytestmark = pytest.mark.slow


@pytest.fixture
def matrix(scenes: Manifest, pipeline: Any, rng: np.random.Generator) -> tuple[str, ...]:
    """A matrix of the sample's test split beside its manifest; the options that name both."""
    scenes.save(Path("m.parquet"))
    split = scenes.split("test")
    own = np.zeros((len(split.image_ids), len(split.caption_ids)))
    own[split.caption_image, np.arange(len(split.caption_ids))] = 1
    scores = rng.permutation(own.size).reshape(own.shape) / own.size + 0.3 * own
    np.save(
        "s.npy", np.argsort(np.argsort(scores, axis=None)).reshape(own.shape).astype(np.float32)
    )
    return "--system", "s.npy", "--manifest", "m.parquet"


@pytest.mark.specification
@pytest.mark.parametrize("name", ["run.txt", "run.json"])
def test_a_run_is_measured_alike_by_others_and_by_ourselves(
    pipeline: Any, matrix: tuple[str, ...], name: str
) -> None:
    metrics = [
        each for metric in ("nDCG@10", "MRR@10", "Recall@10") for each in ("--metric", metric)
    ]
    written = ("--run", name, "--top", "10", "--save-qrels", "q.txt")
    code, out, _ = pipeline("evaluate", *matrix, *metrics, *written, "--json")
    assert code == 0
    (expected,) = json.loads(out)
    listed = (
        ir_measures.read_trec_run("run.txt")
        if name == "run.txt"
        else {query: dict(found) for query, found in json.loads(Path(name).read_text()).items()}
    )
    theirs = ir_measures.iter_calc(
        [ir_measures.parse_measure(each) for each in ("nDCG@10", "RR@10", "R@10", "Success@5")],
        list(ir_measures.read_trec_qrels("q.txt")),
        list(listed) if name == "run.txt" else listed,
    )
    values: dict[tuple[str, str], list[float]] = {}
    for each in theirs:
        values.setdefault((str(each.measure), each.query_id.partition(":")[0]), []).append(
            each.value
        )
    for ours, measure in (("nDCG@10", "nDCG@10"), ("MRR@10", "RR@10"), ("Recall@10", "R@10")):
        for way, asking in (("i2t", "image"), ("t2i", "caption")):
            assert 100 * np.mean(values[measure, asking]) == pytest.approx(
                expected[way][ours], abs=1e-10
            )
    assert 100 * np.mean(values["Success@5", "caption"]) == pytest.approx(expected["t2i"]["R@5"])
    for truth in (("--manifest", "m.parquet"), ("--qrels", "q.txt")):
        again = json.loads(pipeline("evaluate", name, *truth, *metrics, "--json")[1])[0]
        for way in ("i2t", "t2i"):
            unknown = {name for name, value in again[way].items() if value is None}
            assert unknown <= {"MedR", "MeanR"}
            assert again[way] == pytest.approx(expected[way] | dict.fromkeys(unknown))
            assert again["interval"][way]["R@10"] == pytest.approx(
                expected["interval"][way]["R@10"]
            )
        assert again["RSUM"] == pytest.approx(expected["RSUM"])
        assert {*again} - {"relevance"} == {*expected}
    out = pipeline("evaluate", name, "--qrels", "q.txt")[1]
    assert re.search(
        r"image → caption +\d+\.\d \[.*\n  caption → image +\d+\.\d \[.*\n(.*\n)+  RSUM \d", out
    )
    assert re.search(r"judged queries: image → caption \d+, caption → image \d+\n", out)


def test_equal_scores_of_a_run_are_tied_and_others_are_never_found(
    pipeline: Any, matrix: tuple[str, ...]
) -> None:
    Path("q.txt").write_text("1 0 1 1\n2 0 2 1\n3 0 3 1\n")
    Path("run.txt").write_text("1 Q0 1 1 0.5 a\n1 Q0 2 2 0.5 a\n2 Q0 1 1 0.9 a\n")
    given = ("evaluate", "run.txt", "--qrels", "q.txt", "--metric", "MRR", "--json")
    (found,) = json.loads(pipeline(*given)[1])
    assert found["t2i"]["R@1"] == pytest.approx(100 / 6)
    assert found["t2i"]["MRR"] == pytest.approx(100 * 0.75 / 3)
    assert {*found["i2t"].values()} == {found["RSUM"], None} == {None}
    header, _, row = pipeline(*given[:-1], "--markdown")[1].splitlines()[2:5]
    assert header.startswith("| Method | Query → Candidate<br>R@1 |")
    assert row == "| run | 16.7 | 33.3 | 33.3 |"
    assert found["queries"] == {"i2t": 0, "t2i": 3}
    # Bold is tested over what the run has: queries, not images.
    queries = range(40)
    Path("q.txt").write_text("".join(f"q{query} 0 d{query} 1\n" for query in queries))
    Path("best.txt").write_text("".join(f"q{query} Q0 d{query} 1 1 a\n" for query in queries))
    Path("worst.txt").write_text("".join(f"q{query} Q0 d0 1 1 a\n" for query in queries))
    for form in ("--markdown", "--latex"):
        said = pipeline("evaluate", "best.txt", "worst.txt", "--qrels", "q.txt", form)[1]
        assert "paired randomisation test over queries" in said
    # How long lists are, and how many have no right candidate, is said of several systems, too.
    said = pipeline("evaluate", "best.txt", "worst.txt", "--qrels", "q.txt")[1]
    assert "best: query → candidate: lists of up to 1 candidate, each with a right one" in said
    assert "worst: query → candidate: lists of up to 1 candidate, 39 of 40 (97.5 %)\n" in said


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        (
            "1 Q0 1 1 high a\n",
            (),
            "left out 1 row (no finite score: 1); the first: row 1: 1 1 high",
        ),
        ("1 Q0 1 1 0.5\n", (), "TREC's `query Q0 document rank score system`"),
        (
            "1 Q0 1 1 0.5 a\n1 Q0 image:01 2 0.4 a\n",
            (),
            "lists one candidate twice for one query, with different scores: row 1: 1 1 0.5 and "
            "row 2: 1 image:01 0.4; leave one",
        ),
        ("1 Q0 1 1 0.5 a\n", ("--metric", "MeanR"), "lists no right candidate"),
        ("1 Q0 1 1 0.5 a\n", ("--metric", "RSUM"), "leave out the metric RSUM, which needs both"),
        ("1 Q0 1 1 0.5 a\n", ("--top", "5"), "give --run"),
        ("", (), "is empty"),
    ],
)
def test_runs_that_cannot_be_measured_are_refused(
    refused: Callable[..., str],
    matrix: tuple[str, ...],
    text: str,
    more: tuple[str, ...],
    said: str,
) -> None:
    Path("q.txt").write_text("1 0 1 1\n2 0 2 1\n")
    Path("run.txt").write_text(text)
    assert said in refused("evaluate", "run.txt", "--qrels", "q.txt", *more)


def test_a_run_of_other_ids_or_without_judgements_is_refused(
    refused: Callable[..., str], matrix: tuple[str, ...]
) -> None:
    Path("run.txt").write_text("1 Q0 987654321 1 0.5 a\n")
    assert "such as 1" in refused("evaluate", "run.txt", "--manifest", "m.parquet")
    assert "name the --manifest or --qrels that says what is right" in refused(
        "evaluate", "run.txt"
    )
    Path("q.txt").write_text("1 0 1 1\n2 0 2 1\n")
    Path("run.txt").write_text("3 Q0 1 1 0.5 a\n")
    assert "in the direction t2i, and no query of theirs has a right candidate" in refused(
        "evaluate", "run.txt", "--qrels", "q.txt"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2]", "is a list in JSON; expected JSON, query: document: score"),
        (
            '{"a": {"b": {"c": 1}}}',
            "expected JSON, query: document: score, got {'a': {'b': {'c': 1}}}",
        ),  # as metrics.json
        ("{}", "run.json: is empty"),
        ('{"1": {}}', "run.json: is empty"),
        ('{"1": {"1": 0.5, "1": 0.4}}', "has '1' twice in an object"),
        ('{"1": {"1": 0.5}, "1": {"2": 0.4}}', "has '1' twice in an object"),
        ('{"1": {"1": NaN}}', "(no finite score: 1); the first: row 1: 1 1 nan"),
        ('{"1": {"1": true}}', "the first: row 1: 1 1 True"),
    ],
)
def test_json_that_is_no_run_is_refused(
    refused: Callable[..., str], matrix: tuple[str, ...], text: str, said: str
) -> None:
    Path("run.json").write_text(text)
    assert said in refused("evaluate", "run.json", "--manifest", "m.parquet")


@pytest.mark.parametrize("name", ["q.parquet", "q.csv"])
def test_a_row_a_query(
    pipeline: Any, refused: Callable[..., str], matrix: tuple[str, ...], scenes: Manifest, name: str
) -> None:
    (numbers,) = json.loads(pipeline("evaluate", *matrix, "--per-query", name, "--json")[1])
    table = pd.read_parquet(name) if name.endswith("parquet") else pd.read_csv(name)
    split = scenes.split("test")
    assert table["query"].tolist() == [*split.image_ids, *split.caption_ids]
    for way, part in table.groupby("direction"):
        assert 100 * part["R@5"].mean() == pytest.approx(numbers[way]["R@5"])
        assert part["rank"].mean() == pytest.approx(numbers[way]["MeanR"])
    assert "expected a name that ends in .parquet or .csv" in refused(
        "evaluate", *matrix, "--per-query", "q.xlsx"
    )


# A caption of image X and one of image Y, A and B, with what a run lists of them.
TREC = "caption:A Q0 image:X 1 0.5 a\ncaption:A Q0 image:Y 2 0.4 a\ncaption:B Q0 image:Y 1 5e-1 b\n"


@pytest.mark.parametrize(
    "text",
    [
        "A\tQ0\tX\t1\t0.5\ta\nB\tQ0\tY\t1\t0.5\ta\nA\tQ0\tY\t2\t4E-1\ta\n",  # tabs, unsorted
        TREC + "caption:A Q0 image:Y 2 0.4 a\n",  # a row twice
        "q_id,doc_id,score\nA,X,.5\nA,Y,0.4\nB,Y, 0.5\n",
        "A X 0.5\nA Y 0.4\nB Y 0.5\n",
        "query-id\tcorpus-id\tscore\nA\tX\t5e-01\nA\tY\t0.4\nB\tY\t0.5\n",
        '{"A": {"X": 0.5, "Y": 0.4}, "B": {"Y": 0.5}}',
    ],
)
def test_a_run_is_read_by_content(
    pipeline: Callable[..., tuple[int, str, str]],
    matrix: tuple[str, ...],
    scenes: Manifest,
    text: str,
) -> None:
    split, measured = scenes.split("test"), []
    last = int(np.flatnonzero(split.caption_image == 1)[0])
    ids = {
        "X": split.image_ids[0],
        "Y": split.image_ids[1],
        "A": split.caption_ids[0],
        "B": split.caption_ids[last],
    }
    trec, other = (
        re.sub(r"\b[ABXY]\b", lambda found: str(ids[found[0]]), each).encode()
        for each in (TREC, text)
    )
    given = ("--manifest", "m.parquet", "--metric", "MRR", "--json")
    for name, content in (
        ("run.txt", trec),
        ("other.dat", other),
        ("run.gz", gzip.compress(other)),
    ):
        Path(name).write_bytes(content)
        code, out, said = pipeline("evaluate", name, *given)
        assert code == 0, said
        assert f"{name}: read as " in said
        measured.append(json.loads(out)[0]["t2i"])
    assert measured[0] == measured[1] == measured[2]


def test_ids_of_text_stand_for_themselves(
    pipeline: Callable[..., tuple[int, str, str]], matrix: tuple[str, ...]
) -> None:
    """A run and qrels of BEIR, whose ids only they know."""
    Path("run.txt").write_text(
        "q-a Q0 dog.jpg 1 0.9 x\nq-a Q0 cat.jpg 2 0.8 x\nq-b Q0 cat.jpg 1 0.7 x\n"
    )
    Path("qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq-a\tcat.jpg\t1\nq-b\tcat.jpg\t1\n")
    code, out, said = pipeline(
        "evaluate", "run.txt", "--qrels", "qrels.tsv", "--metric", "MRR", "--json"
    )
    assert code == 0, said
    assert json.loads(out)[0]["t2i"]["MRR"] == pytest.approx(75.0)
    assert "qrels.tsv: read as BEIR's qrels with a header, tabs" in said

"""Runs and vectors of MMEB, made as VLM2Vec writes them: the numbers are those of plain NumPy."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Cli
from made_files import (
    CANDIDATES,
    DIMENSION,
    NAMES,
    QUERIES,
    SETTINGS,
    Encoded,
    recall_at_1,
    write_lines,
)

from pipeline.extensions.leaderboards import multi_vectors
from pipeline.foundation.evaluation.statistics.contrast import together
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores import measured
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns


def test_queries_of_mmeb_are_ranked_among_their_own_or_all_candidates(encoded: Encoded) -> None:
    every = [list(range(CANDIDATES))] * QUERIES
    expected = {
        "local": encoded.first_are_right(encoded.own),
        "global": encoded.first_are_right(every),
    }
    assert expected["local"] > expected["global"] > 0
    for pool, recall in expected.items():
        assert recall_at_1(f"{encoded.path}:{pool}") == pytest.approx(recall)
    with pytest.raises(InputError, match=r"type .*made_qry:local or .*made_qry:global"):
        open_system(str(encoded.path))
    # The ranked lists beside them say it, and hold the same ranks and labels.
    for pools, recall in ((encoded.own, expected["local"]), (every, expected["global"])):
        predicted = encoded.predict(pools)
        assert recall_at_1(str(encoded.path)) == pytest.approx(recall)
        assert recall_at_1(str(predicted)) == pytest.approx(recall)
    assert "ties cannot be seen" in open_system(str(predicted)).read_as
    with pytest.raises(InputError, match=r"made_pred\.jsonl: holds one list .* leave out :local"):
        open_system(f"{predicted}:local")


def test_a_file_of_mmeb_alone_says_what_is_missing_beside_it(encoded: Encoded) -> None:
    queries = encoded.path
    candidates = queries.with_name("made_tgt")
    info = queries.with_name("made_info.jsonl")
    for typed in (candidates, info, f"{queries}:{candidates}"):
        with pytest.raises(InputError, match=r": (holds no queries; )?name .*made_qry"):
            open_system(str(typed))
    for typed, missing in (
        (f"{queries}:local", [info]),
        (candidates, [queries, info]),
        (queries, [candidates, info]),
        (info, [queries, candidates]),
    ):
        kept = [(file, file.read_bytes()) for file in missing]
        for file in missing:
            file.unlink()
        said = f"lacks {' and '.join(file.name for file in missing)} beside it"
        with pytest.raises(InputError, match=said):
            open_system(str(typed))
        for file, content in kept:
            file.write_bytes(content)


def test_the_same_candidates_in_another_order_are_all_candidates(encoded: Encoded) -> None:
    """VLM2Vec lists the right one first."""
    info = encoded.path.with_name("made_info.jsonl")
    lines = []
    for query in range(QUERIES):
        names = [NAMES[query], *(name for name in NAMES if name != NAMES[query])]
        lines.append({"cand_names": names, "label_name": NAMES[query]})
    write_lines(info, lines)
    every = [list(range(CANDIDATES))] * QUERIES
    assert recall_at_1(str(encoded.path)) == pytest.approx(encoded.first_are_right(every))
    # With a vector more it is not known whether that candidate is one.
    more = dict(zip([*NAMES, "another"], [*encoded.vectors, encoded.vectors[0]], strict=True))
    encoded.path.with_name("made_tgt").write_bytes(pickle.dumps(more))
    with pytest.raises(InputError, match="lists 40 of 41 candidates"):
        open_system(str(encoded.path))
    shown = open_system(f"{encoded.path}:local").read_as
    assert (
        "41 candidates; each query is ranked among its own candidates; the pool has 40: 40 of these 41"
        in shown
    )
    info.write_text("")
    encoded.path.write_bytes(pickle.dumps(encoded.queries[:0]))
    with pytest.raises(InputError, match=r"made_info\.jsonl: is empty"):
        open_system(str(encoded.path))


def test_ranked_lists_are_compared_with_vectors_of_the_same_candidates(
    encoded: Encoded, pipeline: Cli, refused: Callable[..., str]
) -> None:
    """Queries list a wrong candidate and the right one twice, as MMEB's may."""
    own = [[*row[:-1], row[1], row[0]] for row in encoded.own]
    names = [[NAMES[each] for each in row] for row in own]
    info = [{"cand_names": row, "label_name": NAMES[query]} for query, row in enumerate(names)]
    write_lines(encoded.path.with_name("made_info.jsonl"), info)
    lists = encoded.predict(own)
    system = open_system(str(encoded.path))
    listed = {*np.ravel(own).tolist()}
    again = {row[1] for row in own}
    assert system.shape[0] == len(listed) + len(again)
    said = (
        f"the pool has {system.shape[0]}: {len(listed)} of these 40 are in lists, {len(again)} are"
    )
    assert said in system.read_as
    code, out, _ = pipeline("compare", lists, encoded.path, "--json")
    assert code == 0
    (contrast,) = json.loads(out)
    row = contrast["t2i"]["R@1"]
    recall = encoded.first_are_right(own)
    assert row["a"] == row["b"] == pytest.approx(recall)
    other = lists.with_name("other_pred.jsonl")
    lists.rename(other)
    lines = other.read_text().splitlines()
    vectors = f"{encoded.path}:local"
    said = refused("compare", other, f"{encoded.path}:global")
    assert said.endswith("different candidates: query 0 has 8 in other_pred, 40 in made_qry:global")
    other.write_text("\n".join([*lines[:-1], lines[0]]))
    assert refused("compare", other, vectors).endswith("as many for each query, but others")
    other.write_text("\n".join(lines[1:]))
    assert "other_pred has 29 queries, made_qry:local 30" in refused("compare", other, vectors)


def test_runs_by_other_labels_are_not_compared(
    encoded: Encoded, pipeline: Cli, refused: Callable[..., str]
) -> None:
    lists = encoded.predict(encoded.own)
    lines = lists.read_text().splitlines()
    changed = json.loads(lines[3]) | {"label": [NAMES[encoded.own[3][2]]]}
    other = lists.with_name("other_pred.jsonl")
    other.write_text("\n".join([*lines[:3], json.dumps(changed), *lines[4:]]))
    said = refused("compare", other, encoded.path)
    assert "made_qry: have other right candidates for query 3; give --qrels" in said
    info = encoded.path.with_name("made_info.jsonl")
    assert pipeline("compare", other, encoded.path, "--qrels", info)[0] == 0


def test_two_pools_of_one_run_are_no_seeds(encoded: Encoded, refused: Callable[..., str]) -> None:
    lists = encoded.predict(encoded.own)
    for pool in ("global", "local"):
        said = refused("compare", f"A={encoded.path}:{pool},{encoded.path}", f"B={lists}")
        assert f"made_qry:{pool} and made_qry: are one run of {encoded.path}" in said


def test_a_candidate_that_comes_twice_takes_two_places(tmp_path: Path) -> None:
    lines = [
        {"prediction": ["b", "b", "a"], "label": ["a"], "rel_scores": None},
        {"prediction": [1, 2, 3], "label": [2], "rel_scores": [2]},
    ]
    write_lines(tmp_path / "x_pred.jsonl", lines)
    system = open_system(str(tmp_path / "x_pred.jsonl"))
    how = SETTINGS.evaluate.model_copy(update={"metrics": ["MRR"]})
    numbers = measured.measure(system, "all", "expected", how).numbers["t2i"]
    assert numbers["MRR"] == pytest.approx(100 * (1 / 3 + 1 / 2) / 2)


def test_a_candidate_is_in_memory_once_however_often_a_query_lists_it(
    encoded: Encoded, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_together = []

    def counting(items: Any, padded_to: int) -> Any:
        put_together.append(len(items))
        return of(items, padded_to)

    of = multi_vectors.Candidates.of
    monkeypatch.setattr(multi_vectors.Candidates, "of", counting)
    line = {"cand_names": [NAMES[0]] + 2000 * [NAMES[1]], "label_name": NAMES[0]}
    write_lines(encoded.path.with_name("made_info.jsonl"), [line] * QUERIES)
    lists: Any = open_system(f"{encoded.path}:local").scores
    assert {*put_together} == {2}
    assert len(lists.listed["t2i"].query) == 2001 * QUERIES


ONE = {"a": 0.9, "b": 0.1}


class Code:
    def __reduce__(self) -> Any:
        return print, ("ran",)


def test_what_is_damaged_is_refused_in_one_line(
    tmp_path: Path, encoded: Encoded, capsys: pytest.CaptureFixture[str]
) -> None:
    info = encoded.path.with_name("made_info.jsonl")
    whole = info.read_text()
    predictions = '{"mteb_model_meta": {"model_name": "m"}, "default": '
    for name, content, said in (
        ("a.json", predictions + '{"test": {"q": {"d": "high"}}}}', "no number"),
        ("b.json", predictions + '{"test": {"q": [1, 2]}}}', "no scores by candidate"),
        ("c.json", predictions + '{"test": {"q": {"d": 1}', "at character"),
        ("d.json", predictions + "[]}", "no split with queries"),
        ("e.jsonl", '{"query_id": "q", "results": [{"corpus_id": "d"}]}', "no corpus_id and score"),
        ("f.jsonl", '{"query_id": "q", "results": 5}', "no list of results"),
        ("g.jsonl", '{"prediction": [[1]], "label": [1]}', "neither a text nor a number"),
        ("h.jsonl", '{"prediction": ["a"], "label": ["a", "b"], "rel_scores": [1]}', "one each"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(InputError, match=said) as refused:
            open_system(str(tmp_path / name), Columns(judgements=tmp_path / name))
        assert "\n" not in str(refused.value)
    for content, said in (
        (whole[:-300], "made_info.jsonl: "),
        (whole.replace("date 3", "date x"), "lacks"),
    ):
        info.write_text(content)
        with pytest.raises(InputError, match=said):
            open_system(f"{encoded.path}:local")
    info.write_text(whole)
    candidates = encoded.path.with_name("made_tgt")
    named = dict(zip(NAMES, encoded.vectors, strict=True))
    candidates.write_bytes(pickle.dumps(named | {NAMES[3]: encoded.vectors[None, :2]}))
    with pytest.raises(InputError, match=r"made_tgt: 'candidate 3' is float32 \[1, 2, 16\]"):
        open_system(f"{encoded.path}:local")
    candidates.write_bytes(pickle.dumps(named))
    encoded.path.write_bytes(pickle.dumps([Code()]))
    with pytest.raises(InputError):
        open_system(f"{encoded.path}:local")
    assert "ran" not in capsys.readouterr().out


def test_systems_of_one_direction_are_compared_in_it(encoded: Encoded, tmp_path: Path) -> None:
    metrics = []
    hits = []
    for noise in (0.0, 2.0):
        rng = np.random.default_rng(7)
        encoded.queries = encoded.vectors[:QUERIES] + noise * rng.normal(size=(QUERIES, DIMENSION))
        path = encoded.predict(encoded.own)
        hits.append(
            [encoded.ranked(query, row)[0] == query for query, row in enumerate(encoded.own)]
        )
        system = open_system(str(path))
        metrics.append(measured.measure(system, "all", "expected", SETTINGS.evaluate).ranked[0][1])
    ((contrast,),) = together([[([metrics[0]], [metrics[1]])]], 1000, 0)
    assert contrast["i2t"] is None
    row = contrast["t2i"]["R@1"]
    difference = 100 * np.subtract(np.mean(hits[1]), np.mean(hits[0]))
    assert row["difference"] == pytest.approx(difference)
    # McNemar's exact test of the queries whose hit changed, which random swaps approach.
    changed = int(np.sum(np.array(hits[0]) != np.array(hits[1])))
    fewer = min(int(np.sum(np.array(hits[0]) & ~np.array(hits[1]))), changed)
    better = changed - fewer
    expected = min(
        1.0, 2 * sum(math.comb(changed, k) for k in range(min(fewer, better) + 1)) / 2**changed
    )
    assert row["p"] == pytest.approx(expected, abs=0.03)
    recalls = [contrast["t2i"][f"R@{k}"]["difference"] for k in (1, 5, 10)]
    assert contrast["RSUM"]["difference"] == pytest.approx(sum(recalls))

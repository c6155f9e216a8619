"""Runs and judgements of tools: ids, subsets, marks, forms."""

from __future__ import annotations

import gzip
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from made_files import SETTINGS, recall_at_1, write_lines

from pipeline.extensions.leaderboards.mmeb import Labels
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores import measured
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns, Truth, judge
from pipeline.judge.tables.evaluated import to_text

ONE = {"a": 0.9, "b": 0.1}


@pytest.mark.parametrize(
    ("run", "judged", "recall"),
    [
        # Judgements with an id of text beside the numbers; 19 digits, and hexadecimal ones.
        ({str(10**18 + 1): ONE}, {str(10**18 + 1): "a", "x": "a"}, 100),
        ({"q": {"0x01": 1.0}}, {"q": "0x01", "x": "text"}, 100),
        # Two candidates of one number, which are as similar.
        ({"q": {"1": 0.9, "01": 0.9}}, {"q": "01"}, 50),
        ({"q": {"image_3": 0.9, "caption_3": 0.1, "3": 0.5}}, {"q": "image_3"}, 100),
        ({"q": {"٣": 0.9, "3": 0.1}}, {"q": "3"}, 0),
        ({"q": {"": 0.9, "3": 0.1}}, {"q": ""}, 100),
        ({"q": {"": 0.9, "\0": 0.1}}, {"q": "\0"}, 0),
        # A column of numbers is written as floats where a row has none.
        ({"q": {"5": 0.9, "3": 0.1}}, {"q": "5.0"}, 100),
    ],
)
def test_ids_of_a_tool_are_their_exact_text(
    tmp_path: Path, run: dict[str, Any], judged: dict[str, str], recall: float
) -> None:
    path = tmp_path / "Made_predictions.json"
    path.write_text(json.dumps({"mteb_model_meta": {}, "en": {"test": run}}))
    qrels = tmp_path / "qrels.json"
    qrels.write_text(json.dumps({query: {right: 1} for query, right in judged.items()}))
    assert recall_at_1(str(path), Columns(judgements=qrels)) == recall


def test_candidates_of_ids_written_in_another_way_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "Made_predictions.json"
    run = {"q1": {"000000391895": 0.9}, "q2": {"000000522418": 0.8}}
    path.write_text(json.dumps({"mteb_model_meta": {}, "en": {"test": run}}))
    qrels = tmp_path / "qrels.json"
    for judged in ("391895", "000000391895"):
        qrels.write_text(json.dumps({"q1": {judged: 1}, "q2": {"522418": 1}}))
        system = open_system(str(path), Columns(judgements=qrels))
        system = judge(system, Truth(qrels=qrels), None)
        result = measured.measure(system, "all", "expected", SETTINGS.evaluate)
        of_run = measured.of_lists(result)["t2i"]
        is_shown = of_run.get("candidates_such_as") == ["000000391895", judged]
        assert is_shown == (judged == "391895")


def test_runs_of_uniir_have_a_column_more(tmp_path: Path) -> None:
    run = tmp_path / "run.txt"
    qrels = tmp_path / "qrels.txt"
    run.write_text(
        "8:1 Q0 9:5 1 0.9 mbeir 7\n8:1 Q0 9:6 2 0.5 mbeir 7\n8:2 Q0 9:5 1 0.8 mbeir 7\n8:2 Q0 9:7 2 0.1 mbeir 7\n"
    )
    qrels.write_text("8:1 0 9:5 1 7\n8:2 0 9:7 1 7\n")
    assert recall_at_1(str(run), Columns(judgements=qrels)) == 50
    system = judge(open_system(str(run), Columns(judgements=qrels)), Truth(qrels=qrels), None)
    result = measured.measure(system, "all", "expected", SETTINGS.evaluate)
    described = {"sides": system.sides, "lists": measured.of_lists(result)}
    shown = to_text([("", result.numbers | described)])
    assert shown.startswith("3 candidates x 2 queries")
    assert "query → candidate: lists of up to 2 candidates, each with a right one" in shown


def test_a_subset_and_split_of_mteb_are_chosen(tmp_path: Path) -> None:
    right = {"q1": {"a": 0.1, "b": 0.9}, "q2": {"a": 0.7, "b": 0.2}}
    wrong = {"q1": {"a": 0.9, "b": 0.1}, "q2": {"a": 0.2, "b": 0.7}}
    held = {
        "mteb_model_meta": {"model_name": "org/m"},
        "en": {"test": right},
        "fr": {"test": wrong},
        "eng-Latn:visual": {"test": right, "dev": wrong},
    }
    path = tmp_path / "Made_predictions.json"
    path.write_text(json.dumps(held))
    qrels = tmp_path / "qrels.json"
    qrels.write_text('{"q1": {"b": 1}, "q2": {"a": 1}}')
    columns = Columns(judgements=qrels)
    assert recall_at_1(f"{path}:en:test", columns) == 100
    assert recall_at_1(f"{path}:fr", columns) == 0
    assert recall_at_1(f"{path}:eng-Latn:visual:test", columns) == 100
    assert recall_at_1(f"{path}:eng-Latn:visual:dev", columns) == 0
    for typed, said in (
        (str(path), "holds en:test, fr:test, eng-Latn:visual:test and .*:dev; name one: .*:dev"),
        (f"{path}:eng-Latn:visual", "name one: .*:eng-Latn:visual:dev"),
        (f"{path}:de", "holds en:test, fr:test, eng-Latn:visual:test and .*:dev, not de"),
    ):
        with pytest.raises(InputError, match=said):
            open_system(typed, columns)


@pytest.mark.parametrize("processes", [1, 3])
def test_pairs_that_were_not_scored_are_no_candidates(
    tmp_path: Path, rng: np.random.Generator, processes: int
) -> None:
    scores = rng.normal(size=(10, 50)) + 3 * np.repeat(np.eye(10), 5, axis=1)
    kept = {"i2t": np.argsort(-scores)[:, :20], "t2i": np.argsort(-scores.T)[:, :4]}
    stored = {}
    for way, matrix in (("i2t", scores), ("t2i", scores.T)):
        whole = np.full(matrix.shape, -100.0 * processes, np.float32)
        values = np.take_along_axis(matrix, kept[way], 1) - 100 * (processes - 1)
        np.put_along_axis(whole, kept[way], values.astype(np.float32), 1)
        stored[f"score_matrix_{way}"] = whole
    np.savez(tmp_path / "blip.npz", **stored)  # type: ignore[arg-type]
    system = open_system(str(tmp_path / "blip.npz"))
    assert "no candidates" in system.read_as
    whole = measured.measure(system, "all", "expected", SETTINGS.evaluate)
    numbers = whole.numbers
    hits = kept["t2i"][:, :1] == np.repeat(np.arange(10), 5)[:, None]
    assert numbers["t2i"]["R@1"] == pytest.approx(100 * hits.mean())
    missing = ~(kept["t2i"] == np.repeat(np.arange(10), 5)[:, None]).any(1)
    assert measured.of_lists(whole)["t2i"] == {"longest": 4, "without_right": missing.sum()}
    # A matrix of candidates of images does not rank images for captions, whichever were scored.
    one = stored["score_matrix_i2t"]
    for rows in (slice(0), slice(1), slice(5), slice(5, None)):
        partly = one.copy()
        partly[rows] = -100.0 * processes
        np.save(tmp_path / "one.npy", partly)
        scores_of_images: Any = open_system(str(tmp_path / "one.npy")).scores
        assert [*scores_of_images.listed] == ["i2t"]
    # Matrices of known directions may be scored in most of their pairs, or in all.
    for t2i in (scores.T, np.where(scores.T < -1, -100.0 * processes, scores.T)):
        both = {"score_matrix_i2t": one, "score_matrix_t2i": t2i.astype(np.float32)}
        np.savez(tmp_path / "both.npz", **both)  # type: ignore[arg-type]
        lists: Any = open_system(str(tmp_path / "both.npz")).scores
        assert {way: len(rows.query) for way, rows in lists.listed.items()} == {
            "i2t": 200,
            "t2i": int((t2i > -100).sum()),
        }
    # A score that cannot be ranked is refused, as in any matrix.
    for value in (np.nan, np.inf, -np.inf):
        broken = one.copy()
        broken[3, 15] = value
        np.save(tmp_path / "one.npy", broken)
        with pytest.raises(InputError, match=rf"row 3 \(image\), column 15 .* is {value}"):
            open_system(str(tmp_path / "one.npy"))


def test_judgements_of_other_queries_are_of_another_pool(tmp_path: Path) -> None:
    """The judgements of one language's subset are in a file with those of all languages."""
    path = tmp_path / "Made_predictions.json"
    held = {"q1": {"a.jpg": 0.9, "image:3": 0.1}, "q2": {"a.jpg": 0.7, "image:3": 0.2}}
    path.write_text(json.dumps({"mteb_model_meta": {}, "en": {"test": held}}))
    qrels = tmp_path / "qrels.json"
    judged = {"q1": {"a.jpg": 1}, "q2": {"image:3": 1}, "fr1": {"a.jpg": 1}, "b.jpg": {"a.jpg": 1}}
    qrels.write_text(json.dumps(judged))
    columns = Columns(judgements=qrels)
    assert recall_at_1(str(path), columns) == 50
    system = judge(open_system(str(path), columns), Truth(qrels=qrels), None)
    assert system.judgements is not None
    assert system.judgements.left_out == {"queries that the file does not list": 2}
    # A file's name may have colons, too.
    with_colon = tmp_path / "a:b.json"
    with_colon.write_text(path.read_text())
    assert recall_at_1(f"{with_colon}:en:test", columns) == 50
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"english-q1": {"a.jpg": 1}}))
    run = open_system(str(path), Columns(judgements=other))
    with pytest.raises(InputError, match=r"other\.json: says of none of the queries .* is right"):
        judge(run, Truth(qrels=other), None)
    # An empty list is one, of a query whose right candidate was not found.
    held["fr1"] = {}
    path.write_text(json.dumps({"mteb_model_meta": {}, "en": {"test": held}}))
    assert recall_at_1(str(path), columns) == pytest.approx(100 / 3)
    sentences = [
        {"query_id": query, "query": "", "results": results}
        for query, results in (("q1", [{"corpus_id": "a.jpg", "score": 0.9}]), ("q2", []))
    ]
    write_lines(tmp_path / "st.jsonl", sentences)
    assert recall_at_1(str(tmp_path / "st.jsonl"), columns) == 50
    ranked = [{"prediction": ["a"], "label": ["a"]}, {"prediction": [], "label": ["b"]}]
    write_lines(tmp_path / "y_pred.jsonl", [{**line, "rel_scores": None} for line in ranked])
    assert recall_at_1(str(tmp_path / "y_pred.jsonl")) == 50


def test_a_right_candidate_is_no_rival_of_its_copy_and_may_be_missing(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    vectors = {"a": [1.0, 0.0], "b": [0.0, 1.0], "caption:3": [0.5, 0.5]}
    queries = np.array([[1.0, 0.2], [0.2, 1.0], [1.0, 0.9]], np.float32)
    info = [
        {"cand_names": ["a", "a", "b"], "label_name": "a"},
        {"cand_names": ["caption:3", "b", "b"], "label_name": "caption:3"},
        {"cand_names": ["b", "a"], "label_name": "missing"},
    ]
    (tmp_path / "x_qry").write_bytes(pickle.dumps(queries))
    named = {name: np.array(vector, np.float32) for name, vector in vectors.items()}
    (tmp_path / "x_tgt").write_bytes(pickle.dumps(named))
    write_lines(tmp_path / "x_info.jsonl", info)
    assert recall_at_1(f"{tmp_path / 'x_qry'}:local") == pytest.approx(100 / 3)
    other = open_system(f"{tmp_path / 'x_qry'}:global")
    own = open_system(f"{tmp_path / 'x_qry'}:local")
    lists: list[Any] = [own.scores, other.scores]
    assert not lists[0].has_pairs_of(lists[1], "t2i")
    (tmp_path / "x_qry").write_bytes(pickle.dumps(queries[:, :1]))
    with pytest.raises(InputError, match=r"have the size 1, the candidates' 2"):
        open_system(f"{tmp_path / 'x_qry'}:local")


def test_keys_come_in_any_order(tmp_path: Path) -> None:
    """Of two queries the first finds its candidate, whatever comes first in a file."""
    answers = tmp_path / "qrels.json"
    answers.write_text('{"0": {"a": 1}, "1": {"a": 1}}')
    scores = {"0": {"a": 0.9, "b": 0.1}, "1": {"a": 0.2, "b": 0.7}}
    subset = {"en": {"test": scores}}
    model = {"mteb_model_meta": {"model_name": "org/m"}}
    lists = []
    predictions = []
    for query, row in scores.items():
        results = [{"score": score, "corpus_id": each} for each, score in row.items()]
        lists.append({"results": results, "query_id": query, "query": 'a "dog"'})
        ranked = sorted(row, key=lambda each, row=row: -row[each])  # type: ignore[misc]
        predictions.append({"rel_scores": None, "label": ["a"], "prediction": ranked})
    names = ["query", "results", "query_id"]
    turned = [{name: line[name] for name in names} for line in lists]
    label_first = [{"label": ["a"], "prediction": line["prediction"]} for line in predictions]
    for number, lines in enumerate(
        ([subset | model], [subset], [model | subset], lists, turned, predictions, label_first)
    ):
        path = tmp_path / f"{number}.jsonl"
        write_lines(path, lines)
        assert recall_at_1(str(path), Columns(judgements=answers)) == 50
    for line in (
        {"rel_scores": [2], "label_name": "a"},
        {"label_name": ["a"], "cand_names": ["b"]},
    ):
        assert Labels.recognises(json.dumps(line))


def test_a_form_is_recognised_behind_a_long_text_and_packed(tmp_path: Path) -> None:
    """ViDoRe's ids of queries are their texts."""
    texts = ["a page " * 5000, "b"]
    answers = tmp_path / "qrels.json.gz"
    right = json.dumps({text: {"a": 1} for text in texts})
    answers.write_bytes(gzip.compress(right.encode()))
    scores = dict(zip(texts, [{"a": 0.9, "b": 0.1}, {"a": 0.2, "b": 0.7}], strict=True))
    lines = []
    for text, row in scores.items():
        results = [{"corpus_id": each, "score": score} for each, score in row.items()]
        lines.append({"query": text, "query_id": text, "results": results})
    forms = {
        "mteb.json": json.dumps({"default": {"test": scores}}),
        "sentence_transformers.jsonl": "\n".join(map(json.dumps, lines)),
    }
    for name, content in forms.items():
        path = tmp_path / f"{name}.gz"
        path.write_bytes(gzip.compress(content.encode()))
        assert recall_at_1(str(path), Columns(judgements=answers)) == 50


def test_grades_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    for grade in ("1", None, True, [1], math.nan):
        line = json.dumps({"prediction": ["a"], "label": ["a"], "rel_scores": [grade]})
        with pytest.raises(ValueError, match=r"rel_scores has .* expected a number|NaN"):
            list(Labels(tmp_path / "x_pred.jsonl", ()).rows([line]))


def test_what_lz4_packed_is_read_as_far_as_it_may_grow(tmp_path: Path) -> None:
    answers = tmp_path / "qrels.json"
    answers.write_text('{"q1": {"a": 1}, "q2": {"b": 1}}')
    run = json.dumps({"q1": {"a": 0.9, "b": 0.1}, "q2": {"a": 0.8, "b": 0.3}})
    path = tmp_path / "run.lz4"
    path.write_bytes(pa.compress(run.encode(), "lz4", asbytes=True))
    assert recall_at_1(str(path), Columns(judgements=answers)) == 50
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(InputError, match=r"cannot read .*run\.lz4: "):
        open_system(str(path), Columns(judgements=answers))
    path.write_bytes(pa.compress(b'{"q": {}' + b" " * 300_000_000, "lz4", asbytes=True))
    with pytest.raises(InputError, match=r"run\.lz4: its .* bytes become more than"):
        open_system(str(path), Columns(judgements=answers))

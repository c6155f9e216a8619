"""`evaluate --as TOOL`: the numbers are those of the tool, ties included."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from command_line import Cli

from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.conventions import Numbers, OfLists, OfMatrices, of_tool
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns

Run = dict[str, dict[str, float]]
Grades = dict[str, dict[str, int]]


def run_with_ties(seed: int = 0) -> tuple[Run, Grades]:
    """Queries with many exact ties, doubles that differ by less than floats do, scores below zero,
    ids of one and two digits, ids that queries have too, right answers that are not listed, and
    queries without a right one or without judgements.
    """
    rng = np.random.default_rng(seed)
    run: Run = {}
    grades: Grades = {}
    for query in range(40):
        names = [str(each) for each in rng.permutation(60)[: rng.integers(1, 50)]]
        scores = rng.integers(-3, 4, len(names)) / 4 + rng.integers(0, 3, len(names)) * 1e-9
        run[str(query)] = dict(zip(names, scores.tolist(), strict=True))
        judged = [*rng.permutation(names)[:6].tolist(), "not listed"]
        grades[str(query)] = {name: int(rng.integers(0, 4)) for name in judged}
    grades["7"] = dict.fromkeys(grades["7"], 0)
    del grades["8"]
    return run, grades | {"of another language": {"3": 1}}


def measured(tool: str, run: Any, grades: Any, folder: Path, names: Any = ()) -> Numbers:
    """What a run measures as a tool."""
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "qrels.json").write_text(json.dumps(grades))
    conventions = of_tool(tool)
    assert isinstance(conventions, OfLists)
    return conventions.measure(folder / "run.json", [], folder / "qrels.json", names)


def test_as_trec_eval(tmp_path: Path) -> None:
    run, grades = run_with_ties()
    kinds = {"map", "Rprec", "recip_rank", "ndcg"}
    kinds |= {f"{kind}.1,5,10,100" for kind in ("P", "recall", "ndcg_cut", "map_cut", "success")}
    of_queries = pytrec_eval.RelevanceEvaluator(grades, kinds).evaluate(run)
    names = [*next(iter(of_queries.values()))]
    ours = measured("trec_eval", run, grades, tmp_path, names)
    assert ours.queries == {"query": len(of_queries)} == {"query": 39}
    for name in names:
        theirs = np.mean([numbers[name] for numbers in of_queries.values()])
        assert ours.values[name] == pytest.approx(theirs, abs=1e-9), name


@pytest.mark.parametrize("tool", ["trec_eval", "mteb", "ranx"])
def test_a_query_whose_list_is_empty_finds_nothing(tmp_path: Path, tool: str) -> None:
    """pytrec_eval and ranx count it, and mteb writes one where no candidate was ranked."""
    run: Run = {"q1": {"a": 0.5}, "q2": {}}
    grades = {"q1": {"a": 1}, "q2": {"b": 1}}
    theirs = pytrec_eval.RelevanceEvaluator(grades, {"success.10"}).evaluate(run)
    assert len(theirs) == 2
    name = {"trec_eval": "success_10", "mteb": "hit_rate_at_10", "ranx": "hit_rate@10"}[tool]
    conventions = of_tool(tool)
    assert isinstance(conventions, OfLists)
    (tmp_path / "qrels.json").write_text(json.dumps(grades))
    for held in (run, {"mteb_model_meta": {}, "default": {"test": run}}):
        (tmp_path / "run.json").write_text(json.dumps(held))
        ours = conventions.measure(tmp_path / "run.json", [], tmp_path / "qrels.json", [name])
        assert ours.queries == {"query": 2}
        assert ours.values == {name: 0.5}


# What ranx 0.3.21 printed for `long_lists`: evaluate(Qrels(...), Run(...)), and with
# make_comparable=True where a query has no list. `make ranx-test` asks ranx itself.
OF_RANX: dict[str, dict[str, float]] = {
    "ranx": {
        "map": 0.14942132895330013,
        "mrr@10": 0.14841269841269839,
        "ndcg@10": 0.04305966764515458,
        "ndcg_burges@10": 0.028706445096769714,
        "recall@100": 0.40684462182237485,
    },
    "ranx:make_comparable": {
        "map": 0.14354113544566144,
        "mrr@10": 0.25,
        "ndcg@10": 0.0705797120134322,
        "ndcg_burges@10": 0.060808876735918144,
        "recall@100": 0.5324744730612361,
    },
}


def long_lists(missing: bool) -> tuple[Run, Grades]:
    """Lists of 900 candidates with five different scores, so that a quicksort moves ties."""
    rng = np.random.default_rng(3)
    run: Run = {}
    grades: Grades = {}
    for query in range(8):
        names = [f"d{each}" for each in rng.permutation(900)]
        scores = rng.integers(0, 5, 900).astype(float)
        run[f"q{query}"] = dict(zip(names, scores.tolist(), strict=True))
        best = [name for name in names if run[f"q{query}"][name] == 4]
        grades[f"q{query}"] = {name: int(rng.integers(0, 3)) for name in best[:40]}
    if missing:
        del run["q3"]
        grades["without a list"] = {"d1": 1}
        del grades["q5"]
    return run, grades


def test_as_ranx(tmp_path: Path) -> None:
    for tool, theirs in OF_RANX.items():
        run, grades = long_lists(missing="make_comparable" in tool)
        ours = measured(tool, run, grades, tmp_path, [*theirs])
        assert ours.values == pytest.approx(theirs, abs=1e-9), tool


@pytest.mark.ranx
def test_as_ranx_itself(tmp_path: Path) -> None:
    ranx: Any = importlib.import_module("ranx")

    names = ["map", "mrr", "ndcg", "r-precision", "hits", "precision", "f1", "recall"]
    names += [f"{name}@{k}" for name in ("ndcg_burges", "map", "f1", "hit_rate") for k in (1, 10)]
    for run, grades in (long_lists(missing=True), run_with_ties()):
        theirs = ranx.evaluate(ranx.Qrels(grades), ranx.Run(run), names, make_comparable=True)
        ours = measured("ranx:make_comparable", run, grades, tmp_path, names)
        assert ours.values == pytest.approx(theirs, abs=1e-9)


# Two candidates with equal scores at the top, of which the second is right, and a third one.
TIED = {"q": {"9": 0.5, "10": 0.5, "2": 0.1}}


def test_who_puts_which_tied_candidate_first(tmp_path: Path) -> None:
    for tool, name, right, expected in (
        ("trec_eval", "recip_rank", "9", 1.0),  # as text "9" is larger than "10"
        ("trec_eval", "recip_rank", "10", 0.5),
        ("mteb", "mrr_at_10", "9", 1.0),
        ("mteb", "mrr_at_10", "10", 0.5),
        ("sentence-transformers", "mrr@10", "9", 0.5),
        ("sentence-transformers", "mrr@10", "10", 1.0),
        ("ranx", "mrr", "9", 1.0),  # short lists keep the order of the file
        ("ranx", "mrr", "10", 0.5),
    ):
        ours = measured(tool, TIED, {"q": {right: 1}}, tmp_path, [name])
        assert ours.values[name] == expected, (tool, right)


def test_ids_that_sentence_transformers_has_as_numbers_are_compared_as_numbers(
    tmp_path: Path,
) -> None:
    results = [{"corpus_id": 9, "score": 0.5}, {"corpus_id": 10, "score": 0.5}]
    for ids, expected in ((int, 1.0), (str, 0.5)):
        listed = [each | {"corpus_id": ids(each["corpus_id"])} for each in results]
        file = tmp_path / "predictions.jsonl"
        file.write_text(json.dumps({"query_id": "q", "query": "", "results": listed}) + "\n")
        (tmp_path / "qrels.json").write_text(json.dumps({"q": {"9": 1}}))
        tool = of_tool("sentence-transformers")
        assert isinstance(tool, OfLists)
        ours = tool.measure(file, judgements=tmp_path / "qrels.json", names=["mrr@10"])
        assert ours.values["mrr@10"] == expected, ids


def test_what_is_left_out_is_left_out_before_ties_are_broken(tmp_path: Path) -> None:
    for tool, query, expected in (
        ("mteb", "10", 1 / 2),
        ("mteb:skip_first_result", "10", 1.0),  # the first of the file, not the larger id
        ("mteb:ignore_identical_ids", "9", 1.0),
    ):
        ours = measured(tool, {query: TIED["q"]}, {query: {"10": 1}}, tmp_path, ["mrr_at_10"])
        assert ours.values["mrr_at_10"] == expected, tool


def test_as_vidore_benchmark(tmp_path: Path) -> None:
    run, grades = run_with_ties(1)
    rows = []
    for query, listed in run.items():
        rows += [(query, name, score) for name, score in listed.items()]
        rows += [(query, name, score + 0.25) for name, score in [*listed.items()][::7]]
    file = tmp_path / "run.csv"
    lines = [f"{query},{name},{score!r}\n" for query, name, score in rows]
    file.write_text("query,candidate,score\n" + "".join(lines))
    (tmp_path / "qrels.json").write_text(json.dumps(grades))
    tool = of_tool("vidore-benchmark")
    assert isinstance(tool, OfLists)
    ours = tool.measure(file, judgements=tmp_path / "qrels.json")

    merged: Run = {}
    for query, name, score in rows:
        if query not in merged:
            merged[query] = {name: score}
        else:
            merged[query][name] = max(merged[query].get(name, 0), score)
    for query, listed in merged.items():
        listed.pop(query, None)
    kinds = {f"{kind}.{tool.cutoffs[0]},5,100" for kind in ("ndcg_cut", "map_cut", "recall", "P")}
    of_queries = pytrec_eval.RelevanceEvaluator(grades, kinds).evaluate(merged)
    for name, called in (("ndcg", "ndcg_cut"), ("map", "map_cut"), ("recall", "recall")):
        for k in (1, 5, 100):
            theirs = np.mean([numbers[f"{called}_{k}"] for numbers in of_queries.values()])
            assert ours.values[f"{name}_at_{k}"] == round(float(theirs), 5)
    reciprocal = []
    for query in of_queries:
        ranked = sorted(merged[query], key=lambda name: merged[query][name], reverse=True)[:5]
        places = [at for at, name in enumerate(ranked, 1) if grades[query].get(name, 0) > 0]
        reciprocal.append(1 / min(places) if places else 0)
    assert ours.values["mrr_at_5"] == pytest.approx(np.mean(reciprocal), abs=1e-9)


def test_as_mmeb(tmp_path: Path) -> None:
    lines = [
        {"prediction": ["b", "a", "a", "c"], "label": ["a", "z"], "rel_scores": [1, 3]},
        {"prediction": [5, 4], "label": [4, 5], "rel_scores": [2, 0]},
        {"prediction": ["x"], "label": [], "rel_scores": None},
    ]
    file = tmp_path / "made_pred.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    tool = of_tool("mmeb")
    assert isinstance(tool, OfLists)
    log3 = np.log2(3)
    # By VLM2Vec's formulas on paper; a candidate that is listed twice counts once as found, and
    # twice in nDCG and map. A label of grade 0 is right for all but nDCG.
    expected: dict[str, list[float]] = {
        "hit@1": [0, 1, 0],
        "recall@5": [1 / 2, 1, 1],
        "precision@5": [1 / 5, 2 / 5, 0],
        "f1@5": [2 / 7, 4 / 7, 0],
        "map@1": [0, 1, 0],
        "map@5": [(1 / 2 + 2 / 3) / 2, 1, 0],
        "mrr@5": [1 / 2, 1, 0],
        "ndcg_linear@5": [(1 / log3 + 1 / 2) / (3 + 1 / log3), 1 / log3, 0],
        "ndcg_exponential@5": [(1 / log3 + 1 / 2) / (7 + 1 / log3), 1 / log3, 0],
    }
    ours = tool.measure(file, names=[*expected])
    for name, values in expected.items():
        assert ours.values[name] == pytest.approx(np.mean(values), abs=1e-9), name


def test_what_a_tool_does_not_measure_is_refused_in_one_line(tmp_path: Path) -> None:
    run = {"q": {"a": 1.0}}
    right = {"q": {"a": 1}}
    for tool, lists, grades, names, message in (
        ("trec_evil", run, right, [], "did you mean trec_eval"),
        ("mteb:skip", run, right, [], "takes only ignore_identical_ids, skip_first_result"),
        ("trec_eval:x", run, right, [], "takes nothing behind it"),
        ("trec_eval", run, right, ["ndcg_at_10"], "--metric ndcg_at_10: the tool has map"),
        ("trec_eval", run, right, ["ndcg_cut_0"], "--metric ndcg_cut_0"),
        ("trec_eval", run, {"q": {"a": 0.5}}, [], "no whole number"),
        ("trec_eval", run, {"other": {"a": 1}}, [], "judges none of the queries"),
        ("ranx", run, right | {"other": {"a": 1}}, [], "ranx:make_comparable"),
        ("sentence-transformers", run, {"q": {"a": 0}}, [], "none of its queries has a right"),
        ("mmeb", run, right, [], "NAME_pred.jsonl"),
    ):
        with pytest.raises(InputError, match=message) as error:
            measured(tool, lists, grades, tmp_path, names)
        assert "\n" not in str(error.value)


def test_the_command_prints_a_tool_s_numbers_in_its_words(pipeline: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(TIED))
    (tmp_path / "qrels.json").write_text(json.dumps({"q": {"10": 1}}))
    np.save(tmp_path / "matrix.npy", np.eye(2))
    asked = ["evaluate", str(tmp_path / "run.json"), "--qrels", str(tmp_path / "qrels.json")]
    _, printed, said = pipeline(*asked, "--as", "mteb", "--metric", "ndcg_at_10")
    assert printed == f"run: 1 query\n  ndcg_at_10  {1 / np.log2(3):.5f}\n"
    assert "of equal scores the larger id first" in said
    _, printed, _ = pipeline(*asked, "--as", "trec_eval", "--metric", "ndcg_cut_10", "--json")
    (entry,) = json.loads(printed)
    assert entry["numbers"] == {"ndcg_cut_10": pytest.approx(1 / np.log2(3), abs=1e-12)}
    matrix = ["evaluate", str(tmp_path / "matrix.npy"), *asked[2:]]
    for command, message in (
        ([*matrix, "--as", "mteb"], "measures lists with the ids of queries and candidates"),
        ([*asked, "--as", "mteb", "--folds", "2"], "is for our own numbers"),
        ([*asked, "--as", "mteb", "--latex"], "prints text or, with --json, JSON"),
        (["evaluate", str(tmp_path / "run.json"), "--as", "mteb"], "--as needs --qrels"),
    ):
        code, _, said = pipeline(*command)
        assert code == 2
        assert message in said


def matrix_with_ties(folder: Path, images: int, each: int) -> np.ndarray:
    """Scores [images, captions] with many exact ties, in a file."""
    rng = np.random.default_rng(4)
    scores = rng.integers(0, 6, (images, images * each)) / 4
    np.fill_diagonal(scores[:, ::each], rng.integers(3, 7, images) / 4)
    matrix: np.ndarray = scores.astype(np.float32)
    np.save(folder / "scores.npy", matrix)
    return matrix


def of_matrix(tool: str, folder: Path, each: int, names: Any = ()) -> Numbers:
    """What a matrix measures as a tool."""
    conventions = of_tool(tool)
    assert isinstance(conventions, OfMatrices)
    system = open_system(str(folder / "scores.npy"), Columns(captions_per_image=each))
    return conventions.measure(system, names)


def test_as_clip_benchmark(tmp_path: Path) -> None:
    import torch

    matrix = torch.tensor(matrix_with_ties(tmp_path, images=70, each=2))
    is_right = torch.zeros(matrix.shape, dtype=torch.bool)
    is_right[torch.arange(140) // 2, torch.arange(140)] = True
    ours = of_matrix("clip_benchmark", tmp_path, each=2)
    assert ours.queries == {"image": 70, "caption": 140}
    for k in (1, 5, 10):
        for name, scores, right in (
            ("text", matrix, is_right),
            ("image", matrix.T, is_right.T),
        ):
            first = torch.topk(scores, k, dim=1).indices
            theirs = right.gather(1, first).any(dim=1).float().mean().item()
            assert ours.values[f"{name}_retrieval_recall@{k}"] == theirs


def test_as_open_clip(tmp_path: Path) -> None:
    import torch
    from open_clip_train.train import get_clip_metrics

    matrix = matrix_with_ties(tmp_path, images=40, each=1)
    ours = of_matrix("open_clip", tmp_path, each=1).values
    for name, scores in (("image_to_text", matrix), ("text_to_image", matrix.T)):
        order = np.argsort(-scores, axis=1, kind="stable")  # equal ones by their place
        ranks = np.argmax(order == np.arange(40)[:, None], axis=1) + 1
        assert ours[f"{name}_mean_rank"] == pytest.approx(ranks.mean(), abs=1e-9)
        assert ours[f"{name}_median_rank"] == np.floor(np.median(ranks))
        for k in (1, 5, 10):
            assert ours[f"{name}_R@{k}"] == pytest.approx((ranks <= k).mean(), abs=1e-9)
    # open_clip 3.3 sorts by torch, which agrees where no two scores are equal.
    matrix += np.random.default_rng(5).uniform(0, 0.1, matrix.shape).astype(np.float32)
    np.save(tmp_path / "scores.npy", matrix)
    theirs = get_clip_metrics(torch.tensor(matrix), torch.eye(40), 1.0)
    ours = of_matrix("open_clip", tmp_path, each=1).values
    assert ours == pytest.approx({name: float(theirs[name]) for name in ours}, abs=1e-9)


def test_matrices_that_a_tool_does_not_measure_are_refused(tmp_path: Path) -> None:
    matrix_with_ties(tmp_path, images=6, each=2)
    for tool, names, message in (
        ("open_clip", [], "one caption an image"),
        ("clip_benchmark", ["image_retrieval_recall@7"], "a cutoff above the 6 candidates"),
        ("clip_benchmark", ["recall@1"], "the tool has image_retrieval_recall@K"),
    ):
        with pytest.raises(InputError, match=message):
            of_matrix(tool, tmp_path, 2, names)

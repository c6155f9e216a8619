"""Files that mteb and sentence-transformers write themselves: our numbers are those that the tool
prints, where no two candidates are equally similar.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import mteb
import numpy as np
import pytest
import torch
from mteb._evaluators import RetrievalEvaluator
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models.model_implementations.random_baseline import random_encoder_baseline
from sentence_transformers import util
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
from test_conventions import measured as as_tool, run_with_ties

from pipeline.foundation import settings
from pipeline.judge.systems.scores import measured
from pipeline.judge.systems.scores.conventions import OfLists, of_tool
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns, Truth, judge

pytestmark = pytest.mark.slow
SETTINGS = settings.load(Path(__file__).parents[3] / "params.yaml")
QUERIES, DOCUMENTS = 25, 60
CUTOFFS = (1, 5, 10)
METRICS = [*(f"{name}@{k}" for name in ("nDCG", "Recall", "AP") for k in CUTOFFS), "MRR@10"]


def right_answers() -> dict[str, dict[str, int]]:
    """One to four right documents a query, with grades 1 and 2."""
    rng = np.random.default_rng(0)
    answers = {}
    for query in range(QUERIES):
        documents = rng.choice(DOCUMENTS, rng.integers(1, 5), replace=False)
        answers[f"q{query}"] = {f"d{each}": int(rng.integers(1, 3)) for each in documents}
    return answers


def ours(file: str, answers: Any, folder: Path) -> dict[str, Any]:
    """What a file of a tool measures here, by the right answers as JSON."""
    qrels = folder / "qrels.json"
    qrels.write_text(json.dumps(answers))
    system = open_system(file, Columns(judgements=qrels))
    system = judge(system, Truth(qrels=qrels), None)
    how = SETTINGS.evaluate.model_copy(update={"metrics": METRICS})
    numbers = measured.measure(system, "all", "expected", how).numbers
    return numbers["t2i"]


def of_file(tool: str, file: Path, names: Any = ()) -> dict[str, float]:
    """What `evaluate --as` measures of a tool's own file, by the right answers beside it."""
    conventions = of_tool(tool)
    assert isinstance(conventions, OfLists)
    return conventions.measure(file, [], file.parent / "qrels.json", names).values


def task(answers: dict[str, dict[str, int]], subsets: dict[str, str]) -> AbsTaskRetrieval:
    """A task of mteb with texts. subsets: the split of each."""
    described = TaskMetadata(
        name="Made",
        description="Made texts.",
        type="Retrieval",
        dataset={"path": "made", "revision": "local"},
        category="t2t",
        modalities=["text"],
        eval_splits=sorted(set(subsets.values())),
        eval_langs={subset: ["eng-Latn"] for subset in subsets},
        main_score="ndcg_at_10",
    )

    def texts(kind: str, count: int) -> datasets.Dataset:
        ids = [f"{kind}{number}" for number in range(count)]
        return datasets.Dataset.from_dict({"id": ids, "text": [f"text of {each}" for each in ids]})

    class Made(AbsTaskRetrieval):
        metadata = described

        def load_data(self, num_proc: int | None = None, **asked: Any) -> None:
            whole: Any = {
                "queries": texts("q", QUERIES),
                "corpus": texts("d", DOCUMENTS),
                "relevant_docs": answers,
                "top_ranked": None,
            }
            self.dataset = {subset: {split: whole} for subset, split in subsets.items()}
            self.data_loaded = True

    return Made()


def test_predictions_of_mteb_give_its_numbers(tmp_path: Path) -> None:
    answers = right_answers()
    (result,) = mteb.evaluate(
        mteb.get_model(str(random_encoder_baseline.name)),
        task(answers, {"default": "test"}),
        cache=None,
        prediction_folder=tmp_path,
        show_progress_bar=False,
    ).task_results
    (theirs,) = result.scores["test"]
    numbers = ours(str(tmp_path / "Made_predictions.json"), answers, tmp_path)
    for name, called in (
        ("R", "hit_rate_at"),
        ("Recall", "recall_at"),
        ("nDCG", "ndcg_at"),
        ("AP", "map_at"),
    ):
        for k in CUTOFFS:
            assert numbers[f"{name}@{k}"] / 100 == pytest.approx(theirs[f"{called}_{k}"], abs=1e-5)
    assert numbers["MRR@10"] / 100 == pytest.approx(theirs["mrr_at_10"], abs=1e-5)
    as_mteb = of_file("mteb", tmp_path / "Made_predictions.json")
    assert len(as_mteb) > 40
    assert as_mteb == pytest.approx({name: theirs[name] for name in as_mteb}, abs=1e-6)


class Model:
    """Random vectors in the place of a model of sentence-transformers."""

    similarity_fn_name = "cosine"
    similarity = staticmethod(util.cos_sim)
    model_card_data = SimpleNamespace(set_evaluation_metrics=lambda *_: None)

    def encode(self, texts: list[str], **asked: Any) -> torch.Tensor:
        seeds = [zlib.crc32(text.encode()) for text in texts]
        vectors = [np.random.default_rng(seed).normal(size=16) for seed in seeds]
        return torch.tensor(np.array(vectors))

    encode_query = encode
    encode_document = encode


def test_predictions_of_sentence_transformers_give_its_numbers(tmp_path: Path) -> None:
    answers = right_answers()
    evaluator = InformationRetrievalEvaluator(
        {f"q{number}": f"query {number}" for number in range(QUERIES)},
        {f"d{number}": f"document {number}" for number in range(DOCUMENTS)},
        {query: set(documents) for query, documents in answers.items()},
        map_at_k=list(CUTOFFS),
        precision_recall_at_k=list(CUTOFFS),
        accuracy_at_k=list(CUTOFFS),
        ndcg_at_k=list(CUTOFFS),
        write_predictions=True,
    )
    model: Any = Model()
    theirs = evaluator(model, str(tmp_path))
    (file,) = tmp_path.glob("*_predictions_cosine.jsonl")
    binary = {query: dict.fromkeys(documents, 1) for query, documents in answers.items()}
    numbers = ours(str(file), binary, tmp_path)
    for name, called in (("R", "accuracy"), ("Recall", "recall"), ("nDCG", "ndcg")):
        for k in CUTOFFS:
            expected = theirs[f"cosine_{called}@{k}"]
            assert numbers[f"{name}@{k}"] / 100 == pytest.approx(expected, abs=1e-9)
    assert numbers["MRR@10"] / 100 == pytest.approx(theirs["cosine_mrr@10"], abs=1e-9)
    names = [name.removeprefix("cosine_") for name in theirs]
    of_names = of_file("sentence-transformers", file, names)
    for name in names:
        assert of_names[name] == pytest.approx(theirs[f"cosine_{name}"], abs=1e-9), name


def test_as_mteb_and_as_sentence_transformers(tmp_path: Path) -> None:
    run, grades = run_with_ties()
    run = {query: run[query] for query in run if query in grades}
    for option, asked in (
        ("", {}),
        (":ignore_identical_ids", {"ignore_identical_ids": True}),
        (":skip_first_result", {"skip_first_result": True}),
    ):
        lists = {query: dict(listed) for query, listed in run.items()}
        evaluator: Any = RetrievalEvaluator.evaluate
        *_, theirs = [evaluator(None, grades, lists, [1, 3, 10, 100], **asked)]
        numbers = as_tool("mteb" + option, run, grades, tmp_path)
        for called, values in (
            ("ndcg_at_", theirs.ndcg),
            ("map_at_", theirs.map),
            ("recall_at_", theirs.recall),
            ("precision_at_", theirs.precision),
            ("hit_rate_at_", theirs.hit_rate),
            ("mrr_at_", theirs.mrr),
        ):
            for name, value in values.items():
                ours = numbers.values[called + name.partition("@")[2]]
                assert ours == pytest.approx(value, abs=1e-9), (option, called, name)
        assert numbers.values["accuracy"] == theirs.recall["Recall@1"]

    right = {
        query: {name for name, grade in of_query.items() if grade > 0}
        for query, of_query in grades.items()
        if query in run
    }
    evaluator = InformationRetrievalEvaluator(
        dict.fromkeys(run, ""),
        {str(each): "" for each in range(60)},
        right,
        map_at_k=[3, 100],
    )
    listed = []
    for query in evaluator.queries_ids:
        listed.append([{"corpus_id": name, "score": score} for name, score in run[query].items()])
    of_names = evaluator.compute_metrics(listed)
    numbers = as_tool("sentence-transformers", run, grades, tmp_path)
    assert numbers.queries == {"query": len(listed)} == {"query": 38}
    for name, value in numbers.values.items():
        metric, _, k = name.partition("@")
        assert value == pytest.approx(of_names[f"{metric}@k"][int(k)], abs=1e-9), name

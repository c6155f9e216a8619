"""Numbers of a run that another metric or another tool's rule gives, each computed here in plain
Python: the first line of `explain` names the reason.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_formulas import Formula, hit, ndcg, precisions, share

pytestmark = pytest.mark.usefixtures("here")
QUERIES, CANDIDATES, LISTED = 40, 60, 25
Lists = dict[str, list[str]]


class Run:
    """Each query's candidates with scores of one digit, so that there are ties; the query's own
    item is among them.
    """

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        scores = np.round(rng.normal(size=(QUERIES, CANDIDATES)), 1)
        self.grades: dict[str, dict[str, int]] = {}
        self.listed: dict[str, dict[str, float]] = {}
        for query in range(QUERIES):
            right = rng.choice(CANDIDATES, rng.integers(1, 6), replace=False)
            scores[query, right] += 2
            name = f"d{query}"
            self.grades[name] = {f"d{each}": int(rng.integers(1, 3)) for each in right}
            self.grades[name].pop(name, None)
            best = rng.permutation(np.argsort(-scores[query])[:LISTED])
            self.listed[name] = {f"d{each}": round(float(scores[query, each]), 1) for each in best}
            self.listed[name][name] = 9.0
            if not self.grades[name]:
                self.grades[name] = {"d59": 1}

    def write(self, folder: Path) -> None:
        predictions = {"mteb_model_meta": {"model_name": "m"}, "default": {"test": self.listed}}
        (folder / "made_predictions.json").write_text(json.dumps(predictions))
        (folder / "qrels.json").write_text(json.dumps(self.grades))

    def ordered(self, by: Callable[[str, float], Any], out: str = "") -> Lists:
        """Each list from the smallest key on. out: what is left out."""
        lists = {}
        for query, of_query in self.listed.items():
            best = sorted(of_query, key=lambda each: by(each, of_query[each]))
            if out == "first":
                best = best[1:]
            if out == "query":
                best.remove(query)
            lists[query] = best
        return lists

    def mean(self, lists: Lists, formula: Formula) -> float:
        values = []
        for query, listed in lists.items():
            grades = self.grades[query]
            gains = np.array([grades.get(each, 0) for each in listed])
            ideal = np.array(sorted(grades.values(), reverse=True))
            values.append(formula(gains, ideal))
        return 100 * float(np.mean(values))


def exponential(formula: Formula) -> Formula:
    return lambda gains, ideal: formula(2.0**gains - 1, 2.0**ideal - 1)


def binary(formula: Formula) -> Formula:
    return lambda gains, ideal: formula(np.sign(gains), np.sign(ideal))


def larger_id(candidate: str, score: float) -> tuple[float, list[int]]:
    return -score, [-ord(letter) for letter in candidate.ljust(3, "\0")]


def smaller_id(candidate: str, score: float) -> tuple[float, str]:
    return -score, candidate


RUN = Run()
UNTIED = Run()
for number, of_query in enumerate(UNTIED.listed.values()):
    for place, each in enumerate(of_query):
        of_query[each] += 1e-4 * ((7 * place + number) % 26)
OWN = UNTIED.ordered(smaller_id)
# Scores of which most are below 0, without a query in its own list.
NEGATIVE = copy.deepcopy(UNTIED)
for name, of_query in NEGATIVE.listed.items():
    del of_query[name]
    for each in of_query:
        of_query[each] -= 2.5
CUT = copy.deepcopy(NEGATIVE)
for of_query in CUT.listed.values():
    for each in [*of_query][1:]:
        of_query[each] = max(of_query[each], 0.0)
AS_CUT = CUT.ordered(larger_id)
# The judgements also have two other languages' queries; and lists of which a third has no right
# candidate.
LANGUAGES = copy.deepcopy(UNTIED)
for number in range(2 * QUERIES):
    LANGUAGES.grades[f"other {number}"] = {"d1": 1}
LACKING = copy.deepcopy(UNTIED)
for query in [*LACKING.listed][::3]:
    for right in LACKING.grades[query]:
        LACKING.listed[query].pop(right, None)
FOUND = {
    query: listed
    for query, listed in LACKING.ordered(smaller_id).items()
    if LACKING.grades[query].keys() & {*listed}
}
LARGER = RUN.ordered(larger_id)
SMALLER = RUN.ordered(smaller_id)
WITHOUT_QUERY = RUN.ordered(larger_id, "query")
UNTIED_WITHOUT_QUERY = UNTIED.ordered(smaller_id, "query")
# What the first line says -> the run, and the published numbers.
CASES: Mapping[str, tuple[Run, dict[str, float]]] = {
    "the share of the right candidates that are found, at the same K": (
        UNTIED,
        {"R@5": UNTIED.mean(OWN, share(5)), "R@10": UNTIED.mean(OWN, share(10))},
    ),
    "a hit, of any right candidate, at the same K": (
        UNTIED,
        {"ndcg_at_5": UNTIED.mean(OWN, hit(5)), "ndcg_at_10": UNTIED.mean(OWN, hit(10))},
    ),
    "nDCG with the grade as gain, at the same K": (
        UNTIED,
        {"R@5": UNTIED.mean(OWN, ndcg(5)), "R@10": UNTIED.mean(OWN, ndcg(10))},
    ),
    "nDCG with the gain 2^grade − 1, at the same K": (
        UNTIED,
        {
            "ndcg_linear@5": UNTIED.mean(OWN, exponential(ndcg(5))),
            "ndcg_linear@10": UNTIED.mean(OWN, exponential(ndcg(10))),
        },
    ),
    "nDCG with the grade as gain, at the same K ": (
        UNTIED,
        {
            "ndcg_exponential@5": UNTIED.mean(OWN, ndcg(5)),
            "ndcg_exponential@10": UNTIED.mean(OWN, ndcg(10)),
        },
    ),
    "the average precision, divided by min(right candidates, K), at the same K": (
        UNTIED,
        {"map_at_3": UNTIED.mean(OWN, precisions(3)), "map_at_2": UNTIED.mean(OWN, precisions(2))},
    ),
    "the sum divided by all judged queries, also those that the run does not list": (
        LANGUAGES,
        {"ndcg_at_5": UNTIED.mean(OWN, ndcg(5)) / 3, "R@10": UNTIED.mean(OWN, hit(10)) / 3},
    ),
    "the mean over queries whose list has a right candidate": (
        LACKING,
        {"ndcg_at_5": LACKING.mean(FOUND, ndcg(5)), "R@10": LACKING.mean(FOUND, hit(10))},
    ),
    "scores below 0 cut to 0": (
        NEGATIVE,
        {"ndcg_at_5": CUT.mean(AS_CUT, ndcg(5)), "recall_at_10": CUT.mean(AS_CUT, share(10))},
    ),
    "a hit, of any right candidate, at K = 3": (UNTIED, {"nDCG@5": UNTIED.mean(OWN, hit(3))}),
    "trec_eval's and mteb's ties": (
        RUN,
        {"ndcg_at_5": RUN.mean(LARGER, ndcg(5)), "recall_at_10": RUN.mean(LARGER, share(10))},
    ),
    "sentence-transformers' ties": (
        RUN,
        {"ndcg@5": RUN.mean(SMALLER, binary(ndcg(5))), "R@10": RUN.mean(SMALLER, hit(10))},
    ),
    "candidates with the id of the query left out": (
        RUN,
        {
            "ndcg_at_5": RUN.mean(WITHOUT_QUERY, ndcg(5)),
            "recall_at_10": RUN.mean(WITHOUT_QUERY, share(10)),
        },
    ),
}


def explained(pipeline: Any, run: Run, *more: str) -> str:
    run.write(Path())
    given = ("explain", "made_predictions.json", "--qrels", "qrels.json", *more)
    code, out, err = pipeline(*given, "--most", "1")
    assert code == 0, err
    return " ".join(out.split())


@pytest.mark.parametrize("words", CASES)
def test_the_first_line_names_the_reason(pipeline: Any, words: str) -> None:
    run, numbers = CASES[words]
    published = ",".join(f"{name}={number:.3f}" for name, number in numbers.items())
    said = explained(pipeline, run, "--published", published)
    first = said.split(".", 1)[0]
    assert f"eason found: {words.strip()}" in first, said[:300]
    found = sum(bool(run.grades[query].keys() & {*run.listed[query]}) for query in run.listed)
    share = f"{QUERIES - found} of {QUERIES} ({100 - 100 * found / QUERIES:.1f} %) without a right"
    if found < QUERIES:
        assert share in said, said
    else:
        assert "candidates, each with a right one" in said, said
    if len(numbers) > 1 and "left out" not in words:
        assert said.startswith("Reason found: "), said[:300]


def test_what_has_no_such_reason_is_not_explained(pipeline: Any) -> None:
    said = explained(pipeline, RUN, "--published", "ndcg_at_5=12.345,recall_at_10=93.217")
    assert said.startswith("No reason found among ")
    assert "too far off for another sample of queries" in said.lower()
    assert f" candidates x {QUERIES} queries, protocol all" in said
    assert "By chance: random numbers within 2 points" in said
    # The queries of a candidate are in no order.
    assert "fewer captions of each image" not in said.split("Tried:")[1].split(".")[0]


def test_numbers_of_a_file_of_mteb_are_taken_by_its_names(pipeline: Any) -> None:
    numbers = {
        "ndcg_at_1": UNTIED.mean(OWN, ndcg(1)),
        "ndcg_at_10": UNTIED.mean(OWN, ndcg(10)),
        "recall_at_10": UNTIED.mean(OWN, share(10)),
        "hit_rate_at_10": UNTIED.mean(OWN, hit(10)),
    }
    results = {name: round(number / 100, 5) for name, number in numbers.items()}
    scores = {"test": [{**results, "main_score": 0.5, "nauc_ndcg_at_1_max": 0.2}]}
    Path("made.json").write_text(json.dumps({"mteb_version": "2", "scores": scores}))
    said = explained(pipeline, UNTIED, "--published", "made.json")
    assert said.startswith("The published numbers are those measured."), said[:300]


def test_another_number_of_queries_is_said(pipeline: Any) -> None:
    """D_score.json of VLM2Vec, whose recall is a share."""
    results = {
        "hit@5": UNTIED.mean(OWN, hit(5)) / 100,
        "ndcg_linear@5": UNTIED.mean(OWN, ndcg(5)) / 100,
        "recall@5": UNTIED.mean(OWN, share(5)) / 100,
        "num_pred": 52,
    }
    for data, is_noted in ((52, True), (QUERIES, False)):
        Path("made_score.json").write_text(json.dumps({**results, "num_data": data}))
        said = explained(pipeline, UNTIED, "--published", "made_score.json")
        assert said.startswith("The published numbers are those measured."), said[:300]
        noted = "its numbers are of 52 queries (num_data), these scores have 40" in said
        assert noted == is_noted, said

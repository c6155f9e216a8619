"""Numbers of other subsets, splits and candidates of a tool's files, computed here: the first line
of `explain` names the reason.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_formulas import hit, ndcg

pytestmark = pytest.mark.usefixtures("here")
QUERIES, CANDIDATES, LISTED = 40, 60, 25
Lists = dict[str, list[str]]


class Subsets:
    """Predictions of three languages, of which one has fewer queries, and of two splits; the
    judgements have all queries.
    """

    LANGUAGES = ("en", "fr", "de")

    def __init__(self) -> None:
        rng = np.random.default_rng(8)
        self.grades: dict[str, dict[str, int]] = {}
        self.lists: dict[str, dict[str, Lists]] = {}
        predictions: dict[str, Any] = {"mteb_model_meta": {"model_name": "m"}}
        for number, (language, split) in enumerate(product(self.LANGUAGES, ("test", "dev"))):
            queries = 20 if language == "de" else QUERIES
            signal = 1 + number / 4
            listed: dict[str, dict[str, float]] = {}
            for query in range(queries):
                name = f"{language} {split} {query}"
                scores = rng.normal(size=CANDIDATES)
                right = rng.choice(CANDIDATES, 3, replace=False)
                scores[right] += signal
                best = np.argsort(-scores)[:LISTED].tolist()
                self.grades[name] = {f"d{each}": 1 for each in right}
                listed[name] = {f"d{each}": float(scores[each]) for each in best}
            predictions.setdefault(language, {})[split] = listed
            of_language = self.lists.setdefault(language, {})
            of_language[split] = {name: [*of_query] for name, of_query in listed.items()}
        Path("made_predictions.json").write_text(json.dumps(predictions))
        Path("qrels.json").write_text(json.dumps(self.grades))

    def values(self, language: str, split: str) -> np.ndarray:
        """R@1 and nDCG@5 of each query in percent, [Q, 2]."""
        values = []
        for query, listed in self.lists[language][split].items():
            gains = np.array([self.grades[query].get(each, 0) for each in listed])
            ideal = np.ones(3)
            values.append([hit(1)(gains, ideal), ndcg(5)(gains, ideal)])
        return 100 * np.array(values)


# What the first line says -> the numbers of other subsets than that of English, the split test.
OF_SUBSETS: Mapping[str, Callable[[Subsets], np.ndarray]] = {
    "fr:test of the same file": lambda made: made.values("fr", "test").mean(0),
    "en:dev of the same file": lambda made: made.values("en", "dev").mean(0),
    "the mean over all subsets of the split, such as languages": lambda made: np.mean(
        [made.values(language, "test").mean(0) for language in made.LANGUAGES], 0
    ),
    "the queries of all subsets of the split in one mean": lambda made: np.concatenate(
        [made.values(language, "test") for language in made.LANGUAGES]
    ).mean(0),
}


def of_subset(pipeline: Any, numbers: np.ndarray, most: str = "1") -> str:
    first, five = numbers
    published = f"hit_rate_at_1={first:.3f},ndcg_at_5={five:.3f}"
    given = ("explain", "made_predictions.json:en:test", "--qrels", "qrels.json", "--most", most)
    code, out, err = pipeline(*given, "--published", published)
    assert code == 0, err
    return " ".join(out.split())


@pytest.mark.parametrize("words", OF_SUBSETS)
def test_numbers_of_other_subsets_are_found(pipeline: Any, words: str) -> None:
    said = of_subset(pipeline, OF_SUBSETS[words](Subsets()))
    assert said.startswith(f"Reason found: {words}"), said[:300]


def test_numbers_of_the_subset_need_no_reason(pipeline: Any) -> None:
    made = Subsets()
    said = of_subset(pipeline, made.values("en", "test").mean(0))
    assert said.startswith("The published numbers are those measured."), said[:300]
    # Without judgements of the others, it is said that they are not measured.
    judged = {query: right for query, right in made.grades.items() if query.startswith("en test")}
    Path("qrels.json").write_text(json.dumps(judged))
    said = of_subset(pipeline, made.values("fr", "test").mean(0))
    assert not said.startswith("Reason found"), said[:300]
    assert re.search("Not tried: .*fr:test, fr:dev.*: the judgements have no right answers", said)
    assert "can be read in one way" not in said


def test_candidates_of_all_queries_are_found(pipeline: Any) -> None:
    """MMEB's vectors, of which each query has five candidates of its own."""
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(CANDIDATES, 8)).astype(np.float32)
    queries = vectors[:QUERIES] + 1.5 * rng.normal(size=(QUERIES, 8)).astype(np.float32)
    names = [f"c{number}" for number in range(CANDIDATES)]
    own = [[right, *rng.integers(QUERIES, CANDIDATES, 4).tolist()] for right in range(QUERIES)]
    Path("x_qry").write_bytes(pickle.dumps(queries))
    Path("x_tgt").write_bytes(pickle.dumps(dict(zip(names, vectors, strict=True))))
    with Path("x_info.jsonl").open("w") as info:
        for right, candidates in enumerate(own):
            named = [names[each] for each in candidates]
            info.write(json.dumps({"cand_names": named, "label_name": names[right]}) + "\n")
    everything = [[*range(CANDIDATES)]] * QUERIES
    of_pool = {"local": own, "global": everything}
    of_others = {
        "local": "each query ranked among the candidates of all queries",
        "global": "each query ranked among its own candidates alone",
    }
    published = {}
    for pool, pools in of_pool.items():
        ranks = []
        for right, candidates in enumerate(pools):
            scores = vectors[candidates] @ queries[right]
            ranks.append(np.sum(scores > scores[candidates.index(right)]))
        first = 100 * np.mean(np.array(ranks) < 1)
        three = 100 * np.mean(np.array(ranks) < 3)
        published[pool] = f"hit@1={first:.3f},hit@3={three:.3f}"
    for pool, other in (("local", "global"), ("global", "local")):
        given = ("explain", f"x_qry:{pool}", "--most", "1", "--published")
        _, out, _ = pipeline(*given, published[pool])
        assert out.startswith("The published numbers are those measured."), out[:300]
        _, out, _ = pipeline(*given, published[other])
        said = " ".join(out.split())
        assert said.startswith(f"Reason found: {of_others[pool]}"), said[:300]

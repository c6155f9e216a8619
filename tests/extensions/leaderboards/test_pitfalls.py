"""Numbers that another metric or another tool's rule gives, each computed here in plain Python: the
first line of `explain` names the reason.
"""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

QUERIES, CANDIDATES, LISTED = 40, 60, 25
Lists = dict[str, list[str]]
Formula = Callable[[np.ndarray, np.ndarray], float]


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


def hit(k: int) -> Formula:
    return lambda gains, ideal: float((gains[:k] > 0).any())


def share(k: int) -> Formula:
    return lambda gains, ideal: (gains[:k] > 0).sum() / len(ideal)


def ndcg(k: int) -> Formula:
    def gained(gains: np.ndarray) -> float:
        return float((gains[:k] / np.log2(np.arange(len(gains[:k])) + 2)).sum())

    return lambda gains, ideal: gained(gains) / gained(ideal)


def precisions(k: int) -> Formula:
    """The average precision over min(right candidates, k)."""

    def average(gains: np.ndarray, ideal: np.ndarray) -> float:
        total = 0.0
        for place in range(1, k + 1):
            if gains[place - 1] > 0:
                total += (gains[:place] > 0).sum() / place
        return total / min(len(ideal), k)

    return average


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


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


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


class Tokens:
    """Pages and queries as tokens whose products are below 0 and nearly equal. Tokens are multiples
    of 1/256, so that products and sums are exact in float32.
    """

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        self.pages = []
        self.queries = []
        for _ in range(QUERIES):
            page = 0.2 * rng.normal(size=(rng.integers(3, 9), 4))
            query = 0.5 * page[rng.integers(len(page), size=3)] + 0.05 * rng.normal(size=(3, 4))
            # What all have in common points away from each other.
            page[:, 0] = -4
            query[:, 0] = 2
            self.pages.append(torch.tensor(np.round(256 * page) / 256, dtype=torch.float32))
            self.queries.append(torch.tensor(np.round(256 * query) / 256, dtype=torch.float32))
        torch.save(self.pages, "pages.pt")
        torch.save(self.queries, "queries.pt")

    def published(self, compared: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> str:
        """R@1 and R@5 of scores of pairs of a query and a page; ties by their expectation."""
        found = np.zeros(2)
        for right, query in enumerate(self.queries):
            scores = np.array([float(compared(query, page)) for page in self.pages])
            above = np.sum(scores > scores[right])
            tied = np.sum(scores == scores[right])
            found += np.clip((np.array([1, 5]) - above) / tied, 0, 1)
        first, five = 100 * found / QUERIES
        return f"t2i_R@1={first:.3f},t2i_R@5={five:.3f}"


def maxsim(query: torch.Tensor, page: torch.Tensor) -> torch.Tensor:
    return (query @ page.T).max(1).values.sum()


def padded(query: torch.Tensor, page: torch.Tensor) -> torch.Tensor:
    """Of a page in a batch with one of eight tokens."""
    rows = torch.zeros(8, 4)
    rows[: len(page)] = page
    return maxsim(query, rows)


def of_length_1(query: torch.Tensor, page: torch.Tensor) -> torch.Tensor:
    unit = torch.nn.functional.normalize
    return maxsim(unit(query), unit(page))


# What the first line says -> how tokens are compared.
OF_TOKENS: Mapping[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "MaxSim in float16": lambda query, page: maxsim(query.half(), page.half()),
    "MaxSim in bfloat16": lambda query, page: maxsim(query.bfloat16(), page.bfloat16()),
    "scores in float16": lambda query, page: maxsim(query, page).half(),
    "scores in bfloat16": lambda query, page: maxsim(query, page).bfloat16(),
    "candidates padded with zeros to the longest one": padded,
    "tokens divided by their lengths": of_length_1,
}


def of_tokens(pipeline: Any, *more: str) -> str:
    given = ("explain", "pages.pt:queries.pt", "--captions-per-image", "1", "--most", "1")
    code, out, err = pipeline(*given, *more)
    assert code == 0, err
    return " ".join(out.split())


@pytest.mark.parametrize("words", OF_TOKENS)
def test_tokens_are_compared_as_others_do(pipeline: Any, words: str) -> None:
    tokens = Tokens()
    said = of_tokens(pipeline, "--published", tokens.published(OF_TOKENS[words]))
    assert said.startswith(f"Reason found: {words}"), said[:300]


def test_tokens_as_they_are_need_no_reason(pipeline: Any) -> None:
    tokens = Tokens()
    said = of_tokens(pipeline, "--published", tokens.published(maxsim))
    assert said.startswith("The published numbers are those measured."), said[:300]
    published = tokens.published(maxsim)
    said = of_tokens(pipeline, "--normalise", "--published", published)
    assert said.startswith("Reason found: tokens not divided by their lengths"), said[:300]


def test_padding_of_tokens_of_mmeb_is_found(pipeline: Any) -> None:
    tokens = Tokens()
    queries = torch.nn.utils.rnn.pad_sequence(tokens.queries, batch_first=True)
    pages = torch.nn.utils.rnn.pad_sequence(tokens.pages, batch_first=True)
    names = [f"page {number}" for number in range(QUERIES)]
    named = dict(zip(names, pages.numpy(), strict=True))
    Path("x_qry").write_bytes(pickle.dumps(queries.numpy()))
    Path("x_tgt").write_bytes(pickle.dumps(named))
    lines = [json.dumps({"cand_names": names, "label_name": name}) for name in names]
    Path("x_info.jsonl").write_text("\n".join(lines))
    for compared, said in ((padded, "Reason found: candidates padded"), (maxsim, "The published")):
        published = tokens.published(compared)
        code, out, err = pipeline("explain", "x_qry", "--most", "1", "--published", published)
        assert code == 0, err
        assert out.startswith(said), out[:300]


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


class Marked:
    """A matrix of 40 images x 80 captions, two an image, as BLIP's code fills it: the six best
    captions of each image have scores, all others -100.
    """

    def __init__(self) -> None:
        rng = np.random.default_rng(2)
        scores = rng.normal(size=(QUERIES, 2 * QUERIES)) + np.repeat(np.eye(QUERIES), 2, axis=1)
        best = np.argsort(-scores)[:, :6]
        self.matrix = np.full(scores.shape, -100, np.float32)
        np.put_along_axis(self.matrix, best, np.take_along_axis(scores, best, 1), 1)
        np.save("sims.npy", self.matrix)
        self.right = [self.matrix[image, [2 * image, 2 * image + 1]] for image in range(QUERIES)]

    def published(self, found: Callable[[int, int], float], images: list[int]) -> str:
        """R@2 and R@20 of some images. found: whether an image has a hit at a cutoff."""
        two, twenty = (100 * np.mean([found(image, k) for image in images]) for k in (2, 20))
        return f"i2t_R@2={two:.3f},i2t_R@20={twenty:.3f}"

    def among_scored(self, image: int, k: int) -> float:
        best = self.right[image].max()
        return float(best > -100 and np.sum(self.matrix[image] > best) < k)

    def sorted(self, image: int, k: int) -> float:
        """As LAVIS sorts: the last of equal scores comes first."""
        first = np.argsort(self.matrix[image], kind="stable")[::-1][:k]
        return float((first // 2 == image).any())

    def expected(self, image: int, k: int) -> float:
        """The mean over all orders of captions with the mark."""
        if self.right[image].max() > -100:
            return self.among_scored(image, k)
        without = [(74 - place - 2) / (74 - place) for place in range(k - 6)]
        return 1 - float(np.prod(without))


def of_marked(pipeline: Any, published: str, most: str) -> str:
    given = ("explain", "sims.npy", "--captions-per-image", "2", "--most", most)
    code, out, err = pipeline(*given, "--published", published)
    assert code == 0, err
    return " ".join(out.split())


def test_marks_of_pairs_that_were_not_scored_are_found_to_be_scores(pipeline: Any) -> None:
    made = Marked()
    every = [*range(QUERIES)]
    listed = [image for image in every if made.right[image].max() > -100]
    assert 5 < len(listed) < QUERIES - 5
    words = "−100, which marks pairs that were not scored, read as a score"
    said = of_marked(pipeline, made.published(made.expected, every), "1")
    assert said.startswith(f"Reason found: {words} gives both"), said[:300]
    said = of_marked(pipeline, made.published(made.sorted, every), "2")
    assert f"eason found: {words}; ties by position, the last first gives both" in said, said[:300]
    said = of_marked(pipeline, made.published(made.among_scored, listed), "1")
    assert said.startswith("Reason found: the mean over queries whose list has"), said[:300]
    said = of_marked(pipeline, made.published(made.among_scored, every), "1")
    assert said.startswith("The published numbers are those measured."), said[:300]


class Doubled:
    """40 images with two captions each. The first eight images are one photograph each with the
    last eight; so are the first captions of the next eight and of the eight after them.
    """

    IMAGES = np.arange(QUERIES)
    IMAGES[-8:] = IMAGES[:8]
    CAPTIONS = np.arange(2 * QUERIES)
    CAPTIONS[32:48:2] = CAPTIONS[16:32:2]

    def __init__(self) -> None:
        rng = np.random.default_rng(4)
        images = rng.normal(size=(QUERIES, 8)).astype(np.float32)
        captions = np.repeat(images[self.IMAGES], 2, axis=0)
        captions += 1.2 * rng.normal(size=captions.shape).astype(np.float32)
        np.save("images.npy", images[self.IMAGES])
        np.save("captions.npy", captions[self.CAPTIONS])
        self.scores = (images @ captions.T)[np.ix_(self.IMAGES, self.CAPTIONS)]
        np.save("sims.npy", self.scores)

    def published(self, of_image: np.ndarray, of_caption: np.ndarray) -> str:
        """R@1 and R@5 of both directions; of_image, of_caption: the item that each is."""
        right = {(of_image[caption // 2], of_caption[caption]) for caption in range(2 * QUERIES)}
        images = np.unique(of_image)
        captions = np.unique(of_caption)
        scores = self.scores[np.ix_(images, captions)]
        is_right = np.array([[(i, c) in right for c in captions] for i in images])
        numbers = []
        for way, of_way, right_of_way in (
            ("i2t", scores, is_right),
            ("t2i", scores.T, is_right.T),
        ):
            for k in (1, 5):
                hits = []
                for row, rights in zip(of_way, right_of_way, strict=True):
                    best = row[rights].max()
                    tied = np.sum(row == best)
                    left = k - np.sum(row > best)
                    wrong = tied - np.sum(row[rights] == best)
                    missed = [(wrong - n) / (tied - n) for n in range(int(np.clip(left, 0, tied)))]
                    hits.append(1 - np.prod(missed))
                numbers.append(f"{way}_R@{k}={100 * np.mean(hits):.3f}")
        return ",".join(numbers)


def test_doubles_are_found_to_be_merged(pipeline: Any) -> None:
    made = Doubled()
    images = np.arange(QUERIES)
    captions = np.arange(2 * QUERIES)
    for file in ("sims.npy", "images.npy:captions.npy"):
        given = ("explain", file, "--captions-per-image", "2", "--most", "1", "--published")
        for of_image, of_caption, words in (
            (made.IMAGES, captions, "Reason found: images with equal vectors or scores merged"),
            (images, made.CAPTIONS, "Reason found: captions with equal vectors or scores merged"),
            (images, captions, "The published numbers are those measured."),
        ):
            code, out, err = pipeline(*given, made.published(of_image, of_caption))
            assert code == 0, err
            assert " ".join(out.split()).startswith(words), out[:300]


def test_vectors_without_a_prefix_are_given_as_a_seed(pipeline: Any) -> None:
    rng = np.random.default_rng(6)
    pages = rng.normal(size=(CANDIDATES, 8)).astype(np.float32)
    numbers = {}
    for name, noise in (("with", 1.0), ("without", 1.4)):
        queries = pages + noise * rng.normal(size=pages.shape).astype(np.float32)
        np.save(f"{name}.npy", queries)
        scores = queries @ pages.T
        above = np.sum(scores > np.diag(scores)[:, None], axis=1)
        numbers[name] = [100 * np.mean(above < k) for k in (1, 5)]
    np.save("pages.npy", pages)
    first, five = numbers["without"]
    published = f"t2i_R@1={first:.3f},t2i_R@5={five:.3f}"
    given = ("explain", "pages.npy:with.npy,pages.npy:without.npy", "--captions-per-image", "1")
    code, out, err = pipeline(*given, "--most", "1", "--published", published)
    assert code == 0, err
    assert "eason found: the second seed alone gives both" in " ".join(out.split()), out[:300]

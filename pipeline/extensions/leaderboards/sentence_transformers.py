"""The predictions that evaluators of sentence-transformers write."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pipeline.foundation.evaluation.judgements.layouts import Layout, Row
from pipeline.foundation.files import long_json

TEXT = r'"(?:[^"\\]|\\.)*"'
# Keys come in any order.
START = re.compile(
    r'\s*\{\s*(?:"query_id"\s*:\s*["\d]'
    rf'|"query"\s*:\s*{TEXT}\s*,\s*"(?:query_id|results)"\s*:'
    r'|"results"\s*:\s*\[\s*\{\s*"(?:corpus_id|score)"\s*:)'
)
LONGEST_QUERY = 1 << 24  # characters


class Predictions(Layout):
    """`Information-Retrieval_evaluation_*_predictions_*.jsonl`: a line for each query, with its
    best candidates and their scores.
    """

    value = "score"
    title = "sentence-transformers' predictions"

    @classmethod
    def recognises(cls, start: str) -> bool:
        return bool(START.match(start))

    def rows(self, text: Iterable[str]) -> Iterator[Row]:
        queries: set[str] = set()
        for number, line in enumerate(long_json.values(text, LONGEST_QUERY), start=1):
            query = _query(line, number)
            if query in queries:
                raise ValueError(f"line {number}: has the query {query[:40]!a} twice")
            queries.add(query)
            if not line["results"]:
                self.unanswered.append(query)
            for result in line["results"]:
                yield query, *_candidate(result, number)


def _query(line: Any, number: int) -> str:
    """The query's id of a line."""
    if not isinstance(line, dict) or not isinstance(line.get("results"), list):
        raise ValueError(f"line {number} has no list of results")
    query = line.get("query_id")
    if not isinstance(query, str | int):
        raise ValueError(f"line {number} has no query_id")
    return str(query)


def _candidate(result: Any, number: int) -> tuple[str, str]:
    """The id of one result, and its score."""
    if not isinstance(result, dict):
        raise ValueError(f"line {number}: a result is no object with corpus_id and score")
    candidate = result.get("corpus_id")
    score = result.get("score")
    if not isinstance(candidate, str | int) or not isinstance(score, int | float):
        raise ValueError(f"line {number}: a result has no corpus_id and score")
    return str(candidate), str(score)

"""The predictions of mteb: {task}_predictions.json of its `prediction_folder`."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pipeline.foundation.evaluation.judgements.layouts import Layout, Row
from pipeline.foundation.files import long_json

MODEL = "mteb_model_meta"
LEVELS = 3  # subset, split, query
LONGEST_QUERY = 1 << 22  # characters; mteb keeps at most 1,000 candidates of a query
NAMED = r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:'
# The model comes first, or a candidate in the objects of a subset, a split and a query.
START = re.compile(rf'\s*\{{\s*"{MODEL}"\s*:|{NAMED * LEVELS}\s*\{{')


class MtebPredictions(Layout):
    """mteb's predictions, {subset: {split: {query: {candidate: score}}}}, unsorted.

    A file of several subsets or splits is read by FILE:SUBSET:SPLIT. Lists are as long as the
    largest cutoff, 1,000 by default; candidates are saved before mteb leaves any out.
    """

    value = "score"

    @classmethod
    def recognises(cls, start: str) -> bool:
        return bool(START.match(start))

    def rows(self, text: Iterable[str]) -> Iterator[Row]:
        chosen: tuple[str, str] | None = None
        others: set[tuple[str, str]] = set()
        queries: set[str] = set()
        model = ""
        for names, value in long_json.nested(text, LEVELS, LONGEST_QUERY):
            if names[:1] == (MODEL,):
                if names[1:] == ("model_name",):
                    model = str(value)
                continue
            if len(names) < LEVELS:
                raise ValueError(
                    f"{_shown(names)} holds no split with queries: it has no predictions"
                )
            subset, split, query = names
            if not self._is_asked_for(subset, split):
                others.add((subset, split))
                continue
            if chosen is None:
                chosen = (subset, split)
            if chosen != (subset, split):
                raise ValueError(
                    f"holds {_shown(chosen)} and {_shown((subset, split))}; name one: "
                    f"{self.path}:{subset}:{split}"
                )
            if query in queries:
                raise ValueError(f"has {query[:40]!a} twice in an object")
            queries.add(query)
            if value == {}:
                self.unanswered.append(query)
            yield from _candidates(query, value)
        if chosen is None and not others:
            raise ValueError("holds no predictions")
        if chosen is None:
            held = ", ".join(sorted(map(_shown, others)))
            raise ValueError(f"holds {held}, not {':'.join(self.parts)}")
        self.title = f"mteb's predictions, subset {chosen[0]}, split {chosen[1]}"
        if model:
            self.title += (
                f", of {model} (or of a later model: mteb keeps the name of the first that wrote "
                "the file)"
            )

    def _is_asked_for(self, subset: str, split: str) -> bool:
        """Whether the user names a subset and split: both, one of them, or none."""
        if len(self.parts) < 2:
            return {*self.parts} <= {subset, split}
        return list(self.parts) == [subset, split]


def _candidates(query: str, value: Any) -> Iterator[Row]:
    """The rows of one query."""
    if not isinstance(value, dict):
        raise ValueError(
            f"{query[:40]!a} holds no scores by candidate: only predictions of retrieval and reranking "
            "are read"
        )
    for candidate, score in value.items():
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise ValueError(f"the score of {candidate[:40]!a} for {query[:40]!a} is no number")
        yield query, candidate, str(score)


def _shown(names: Iterable[str]) -> str:
    return ":".join(names)

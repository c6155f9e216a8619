"""The predictions of mteb: {task}_predictions.json of its `prediction_folder`."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pipeline.foundation.evaluation.judgements.layouts import Layout, Other, Row
from pipeline.foundation.files import long_json

MODEL = "mteb_model_meta"
LEVELS = 3  # subset, split, query
LONGEST_QUERY = 1 << 22  # characters; mteb keeps at most 1,000 candidates of a query
LISTED = 6  # subsets that a message lists
NAMED = r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:'
# The model comes first, or a candidate in the objects of a subset, a split and a query.
START = re.compile(rf'\s*\{{\s*"{MODEL}"\s*:|{NAMED * LEVELS}\s*\{{')


class MtebPredictions(Layout):
    """mteb's predictions, {subset: {split: {query: {candidate: score}}}}, unsorted.

    A file of several subsets or splits is read by FILE:SUBSET:SPLIT. Lists are as long as the
    largest cutoff, 1,000 by default; candidates are saved before mteb leaves any out.
    """

    value = "score"
    has_parts = True

    @classmethod
    def recognises(cls, start: str) -> bool:
        return bool(START.match(start))

    def rows(self, text: Iterable[str]) -> Iterator[Row]:
        chosen: tuple[str, str] | None = None
        asked_for: dict[tuple[str, str], None] = {}
        others: dict[tuple[str, str], None] = {}
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
                others[subset, split] = None
                continue
            asked_for[subset, split] = None
            if chosen is None:
                chosen = (subset, split)
            if chosen != (subset, split):
                continue
            if query in queries:
                raise ValueError(f"has {query[:40]!a} twice in an object")
            queries.add(query)
            if value == {}:
                self.unanswered.append(query)
            yield from _candidates(query, value)
        if chosen is None and not others:
            raise ValueError("holds no predictions")
        if chosen is None:
            raise ValueError(f"holds {_listed(others)}, not {':'.join(self.parts)}")
        if len(asked_for) > 1:
            last = _shown([*asked_for][-1])
            raise ValueError(f"holds {_listed(asked_for)}; name one: {self.path}:{last}")
        for other in others:
            self.others.append(Other(other, is_sibling=other[1] == chosen[1]))
        self.title = f"mteb's predictions, subset {chosen[0]}, split {chosen[1]}"
        # The folder of results that mteb makes for org/model is org__model.
        if model and model.replace("/", "__") not in self.path.parts:
            self.title += (
                f", of {model} (or of a later model: mteb keeps the name of the first that wrote "
                "the file)"
            )

    def _is_asked_for(self, subset: str, split: str) -> bool:
        """Whether the user names a subset and split: both, one of them, or none. A name may have
        colons.
        """
        typed = ":".join(self.parts)
        return typed in ("", subset, split, _shown((subset, split)))


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


def _listed(pairs: Iterable[tuple[str, str]]) -> str:
    """Subsets and splits in the order of the file, for messages."""
    every = [*map(_shown, pairs)]
    if len(every) > LISTED:
        every[LISTED:] = [f"{len(every) - LISTED:,} more"]
    if len(every) == 1:
        return every[0]
    return f"{', '.join(every[:-1])} and {every[-1]}"


def _shown(names: Iterable[str]) -> str:
    return ":".join(names)

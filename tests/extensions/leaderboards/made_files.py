"""Files of the tools behind leaderboards, made as their sources write them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation import settings
from pipeline.judge.systems.scores import measured
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns, Truth, judge

SETTINGS = settings.load(Path(__file__).parents[3] / "params.yaml")
QUERIES, CANDIDATES, OWN, DIMENSION = 30, 40, 8, 16
# The vectors of clip-retrieval's images.
PHOTOS = np.random.default_rng(8).normal(size=(8, 6))
NAMES = [f"candidate {number}" for number in range(CANDIDATES)]


def recall_at_1(file: str, columns: Columns = Columns()) -> float:
    """R@1 of the queries of a file, in percent."""
    system = open_system(file, columns)
    if columns.judgements is not None:
        system = judge(system, Truth(qrels=columns.judgements), None)
    value: float = measured.measure(system, "all", "expected", SETTINGS.evaluate).numbers["t2i"][
        "R@1"
    ]
    return value


def write_lines(path: Path, lines: Iterable[Any]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


class Encoded:
    """A data set of MMEB: candidate i is right for query i, which has `OWN` candidates of its
    own.
    """

    def __init__(self, folder: Path, rng: np.random.Generator) -> None:
        self.path = folder / "made_qry"
        self.vectors = rng.normal(size=(CANDIDATES, DIMENSION)).astype(np.float32)
        noise = rng.normal(size=(QUERIES, DIMENSION)).astype(np.float32)
        self.queries = self.vectors[:QUERIES] + 1.5 * noise
        self.own = []
        for query in range(QUERIES):
            others = rng.choice(np.delete(np.arange(CANDIDATES), query), OWN - 1, replace=False)
            self.own.append([query, *others.tolist()])
        self.path.write_bytes(pickle.dumps(self.queries))
        named = dict(zip(NAMES, self.vectors, strict=True))
        (folder / "made_tgt").write_bytes(pickle.dumps(named))
        names = [[NAMES[each] for each in row] for row in self.own]
        info = [{"cand_names": row, "label_name": NAMES[query]} for query, row in enumerate(names)]
        write_lines(folder / "made_info.jsonl", info)

    def ranked(self, query: int, among: list[int]) -> list[int]:
        scores = self.vectors[among] @ self.queries[query]
        return [among[each] for each in np.argsort(-scores)]

    def first_are_right(self, pools: list[list[int]]) -> float:
        """Percent of queries whose first candidate is right."""
        first = [self.ranked(query, pool)[0] for query, pool in enumerate(pools)]
        return 100 * float(np.mean(np.array(first) == np.arange(QUERIES)))

    def predict(self, pools: list[list[int]]) -> Path:
        """Write the ranked lists, as VLM2Vec does."""
        lines = []
        for query, pool in enumerate(pools):
            ranked = [NAMES[each] for each in self.ranked(query, pool)]
            lines.append({"prediction": ranked, "label": [NAMES[query]], "rel_scores": None})
        path = self.path.with_name("made_pred.jsonl")
        write_lines(path, lines)
        return path

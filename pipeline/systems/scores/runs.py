"""Runs: the best candidates of each query with their scores, as TREC's tools and ranx read and
write them.

    caption:55 Q0 image:12 1 0.8342 NAME     TREC: query, Q0, document, rank, score, system
    {"caption:55": {"image:12": 0.8342}}     ranx, in a file that ends in .json
    query-id,corpus-id,score                 any table with such a header is read, too, see
                                             `judgements.columns`

A candidate that a run does not list is never found. Equal scores are tied; ranks are not read.
"""

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.evaluation.judgements.columns import RUN
from pipeline.evaluation.judgements.names import Names
from pipeline.evaluation.judgements.rows import Rows
from pipeline.evaluation.retrieval import Collection, Direction, Floats, Ids, Side
from pipeline.evaluation.retrieval.lists import Listed, Lists
from pipeline.evaluation.retrieval.top import top
from pipeline.evaluation.retrieval.workers import Progress, after
from pipeline.files import atomic
from pipeline.parts.errors import InputError, InputWarning, counted
from pipeline.systems.scores.system import System

WAYS: tuple[tuple[Direction, Side, Side], ...] = (
    ("i2t", "image", "caption"),
    ("t2i", "caption", "image"),
)


class Run(NamedTuple):
    """What a run lists of one direction, n rows: ids int64 of queries and candidates, scores
    float64.
    """

    query: Ids
    candidate: Ids
    score: Floats


def write(
    path: Path,
    system: System,
    count: int,
    seed: int,
    block_megabytes: float,
    progress: Progress = lambda queries: None,
) -> None:
    """Write the best candidates of every query, of both directions."""
    name, generator, before = "".join(system.name.split()) or "run", np.random.default_rng(seed), 0
    with atomic.replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        listed = path.suffix == ".json"
        file.write("{" if listed else "")
        for number, (way, asking, answering) in enumerate(WAYS):
            best, scores = top(
                system.scores, way, count, generator, block_megabytes, after(progress, before)
            )
            before += len(best)
            queries, candidates = system.ids(asking), system.ids(answering)
            for query, row, values in zip(
                queries.tolist(), candidates[best].tolist(), scores.tolist(), strict=True
            ):
                if listed:
                    score_of = {
                        f"{answering}:{each}": value
                        for each, value in zip(row, values, strict=True)
                    }
                    file.write("" if number == 0 and query == queries[0] else ",\n")
                    file.write(f'"{asking}:{query}": {json.dumps(score_of)}')
                else:
                    file.writelines(
                        f"{asking}:{query} Q0 {answering}:{each} {rank} {value!r} {name}\n"
                        for rank, (each, value) in enumerate(zip(row, values, strict=True), 1)
                    )
        file.write("}\n" if listed else "")


def read(path: Path, names: Names | None = None) -> tuple[dict[Direction, Run], str]:
    """Read a run; also what it was recognised as. names: finds ids by how they are written."""
    parts: dict[Direction, list[Run]] = {"i2t": [], "t2i": []}
    rows = Rows(path, RUN)
    for table, numbers in rows.tables():
        image, caption, asks, _ = rows.pairs(table, numbers, names or Names())
        score, finite = rows.values(table)
        rows.leave_out("no finite score", table, numbers, ~finite)
        if rows.left_out:  # without a row, what is below it would be ranked higher
            raise InputError(f"{path}: a run is measured whole; {rows.left_out.lines()[0]}")
        parts["i2t"].append(Run(image[asks], caption[asks], score[asks]))
        parts["t2i"].append(Run(caption[~asks], image[~asks], score[~asks]))
    return {
        way: Run(*map(np.concatenate, zip(*found, strict=True))) for way, found in parts.items()
    }, rows.title


def lists(run: Mapping[Direction, Run], pool: Collection, name: str) -> Lists:
    """The lists of a run within a pool, of the directions that have any. name: the file, for
    messages.
    """
    listed: dict[Direction, Listed] = {}
    for way, asking, answering in WAYS:
        if way in run and len(run[way].query):
            once = _once(run[way], name, asking, answering)
            listed[way] = Listed(
                pool.require(asking, once.query, name),
                pool.require(answering, once.candidate, name),
                once.score,
            )
    return Lists(pool.shape, listed, name)


def _once(run: Run, name: str, asking: Side, answering: Side) -> Run:
    for row in np.flatnonzero(~np.isfinite(run.score))[:1].tolist():
        raise InputError(
            f"{name}: the score of {answering} {run.candidate[row]} for {asking} {run.query[row]} is "
            f"{run.score[row]}: it cannot be ranked"
        )
    order = np.lexsort((run.candidate, run.query))
    query, candidate, score = run.query[order], run.candidate[order], run.score[order]
    again = np.flatnonzero((query[1:] == query[:-1]) & (candidate[1:] == candidate[:-1])) + 1
    if (other := again[score[again] != score[again - 1]]).size:
        row = other[0]
        raise InputError(
            f"{name}: lists {answering} {candidate[row]} twice for {asking} {query[row]}, with different "
            "scores; leave one"
        )
    if again.size:
        warnings.warn(
            f"{name}: {counted(again.size, 'row')} repeated with the same score; one of each counts",
            InputWarning,
            stacklevel=2,
        )
    return Run(np.delete(query, again), np.delete(candidate, again), np.delete(score, again))

"""Runs: the best candidates of each query with their scores, as TREC's tools and ranx read and write them.

    caption:55 Q0 image:12 1 0.8342 NAME     TREC: query, Q0, document, rank, score, system
    {"caption:55": {"image:12": 0.8342}}     ranx, in a file that ends in .json
    query-id,corpus-id,score                 any table with such a header is read, too, see `judgements.columns`

A candidate that a run does not list is never found. Equal scores are tied; ranks are not read.
"""

import json
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.evaluation.judgements.columns import RUN
from pipeline.evaluation.judgements.names import Names
from pipeline.evaluation.judgements.rows import Rows
from pipeline.evaluation.metrics.base import Fold
from pipeline.evaluation.retrieval import Collection, Direction, Floats, Ids, Positives, Relevance, Side
from pipeline.evaluation.retrieval.placements import NEVER, Placements, around
from pipeline.evaluation.retrieval.top import top
from pipeline.evaluation.retrieval.workers import Progress, after
from pipeline.files import atomic
from pipeline.parts.errors import InputError, InputWarning, counted
from pipeline.systems.scores.system import System

WAYS: tuple[tuple[Direction, Side, Side], ...] = (("i2t", "image", "caption"), ("t2i", "caption", "image"))


class Run(NamedTuple):
    """What a run lists of one direction, n rows: ids int64 of queries and candidates, scores float64."""

    query: Ids
    candidate: Ids
    score: Floats


def write(path: Path, system: System, count: int, seed: int, block_megabytes: float,
          progress: Progress = lambda queries: None) -> None:
    """Write the best candidates of every query, of both directions."""
    name, generator, before = "".join(system.name.split()) or "run", np.random.default_rng(seed), 0
    with atomic.replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        listed = path.suffix == ".json"
        file.write("{" if listed else "")
        for number, (way, asking, answering) in enumerate(WAYS):
            best, scores = top(system.scores, way, count, generator, block_megabytes, after(progress, before))
            before += len(best)
            queries, candidates = system.ids(asking), system.ids(answering)
            for query, row, values in zip(queries.tolist(), candidates[best].tolist(), scores.tolist(), strict=True):
                if listed:
                    score_of = {f"{answering}:{each}": value for each, value in zip(row, values, strict=True)}
                    file.write("" if number == 0 and query == queries[0] else ",\n")
                    file.write(f'"{asking}:{query}": {json.dumps(score_of)}')
                else:
                    file.writelines(f"{asking}:{query} Q0 {answering}:{each} {rank} {value!r} {name}\n"
                                    for rank, (each, value) in enumerate(zip(row, values, strict=True), 1))
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
    return {way: Run(*map(np.concatenate, zip(*found, strict=True))) for way, found in parts.items()}, rows.title


def collection_of(run: dict[Direction, Run], images: Ids, captions: Ids) -> Collection:
    """Make a pool of the images and captions that a run lists, and of further ids."""
    for way, image, caption in (("i2t", "query", "candidate"), ("t2i", "candidate", "query")):
        images = np.union1d(images, getattr(run[way], image))  # type: ignore[index]
        captions = np.union1d(captions, getattr(run[way], caption))  # type: ignore[index]
    return Collection(images, captions, np.full(len(captions), -1, np.int64))


def fold_of(path: Path, run: dict[Direction, Run], collection: Collection, relevance: Relevance, ties: Any) -> Fold:
    """Find where a run lists each right candidate."""
    every = [_placed(path, run[way], collection, relevance.i2t if way == "i2t" else relevance.t2i, asking, answering)
             for way, asking, answering in WAYS]
    return Fold.of(relevance, (every[0].best(), every[1].best()), ties, (every[0], every[1]))


def _placed(path: Path, run: Run, collection: Collection, positives: Positives, asking: Side, answering: Side
            ) -> Placements:
    query = collection.require(asking, run.query, str(path))
    if len(query) and not positives.count[query].any():
        raise InputError(f"{path}: no {asking} that it lists as a query has a right {answering}, "
                         f"{asking} {run.query[0]} for one: its ids are not those of the manifest or qrels")
    candidate = collection.require(answering, run.candidate, str(path))
    size = len(collection.ids(answering))
    key = query * size + candidate
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(key[order][1:] == key[order][:-1]) + 1
    if (twice := again[run.score[order][again] != run.score[order][again - 1]]).size:
        row = order[twice[0]]
        raise InputError(f"{path}: lists {answering} {run.candidate[row]} twice for {asking} {run.query[row]}, with "
                         "different scores; leave one")
    if again.size:
        warnings.warn(f"{path}: {counted(again.size, 'row')} repeated with the same score; one of each counts",
                      InputWarning, stacklevel=2)
        once = np.sort(np.delete(order, again))
        run, query, key = Run(run.query[once], run.candidate[once], run.score[once]), query[once], key[once]
        order = np.argsort(key, kind="stable")
    wanted = positives.query * size + positives.candidate
    at = np.minimum(np.searchsorted(key[order], wanted), max(len(key) - 1, 0))
    is_listed = key[order][at] == wanted if len(key) else np.zeros(len(wanted), bool)
    score = run.score[order][at] if len(key) else np.zeros(len(wanted))
    by_query = np.lexsort((run.score, query))
    ends = pairwise(np.searchsorted(query[by_query], np.arange(len(positives) + 1)).tolist())
    listed = (run.score[by_query[first:last]] for first, last in ends)
    above, tied = around(listed, np.where(is_listed, score, np.nan), positives.start)
    return Placements.of(positives, np.where(is_listed, above, NEVER), np.where(is_listed, tied, 1), max(size, 1))

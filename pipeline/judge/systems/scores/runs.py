"""Runs: the best candidates of each query with their scores, as TREC's tools and ranx read and
write them.

    caption:55 Q0 image:12 1 0.8342 NAME     TREC: query, Q0, document, rank, score, system
    {"caption:55": {"image:12": 0.8342}}     ranx, in a file that ends in .json
    query-id,corpus-id,score                 any table with such a header is read, too, see
                                             `judgements.columns`

A candidate that a run does not list is never found. Equal scores are tied. Ranks are read where
there are no scores.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.foundation import evaluation
from pipeline.foundation.evaluation.retrieval import Collection, Direction, Floats, Ids, Marks, Side
from pipeline.foundation.evaluation.retrieval.lists import (
    UNKNOWN_ORDER,
    Listed,
    Lists,
    Order,
    order_of,
)
from pipeline.foundation.evaluation.retrieval.top import top
from pipeline.foundation.evaluation.retrieval.workers import Progress, after
from pipeline.foundation.files import atomic
from pipeline.foundation.parts.errors import InputError, InputWarning, counted
from pipeline.foundation.parts.wrapping import printable
from pipeline.judge.systems.scores.system import System

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.judgements.layouts import Layout, Other
    from pipeline.foundation.evaluation.judgements.names import Names
    from pipeline.foundation.evaluation.judgements.rows import Rows, Table

WAYS: tuple[tuple[Direction, Side, Side], ...] = (
    ("i2t", "image", "caption"),
    ("t2i", "caption", "image"),
)


class RunFile(NamedTuple):
    """What a file of a run holds."""

    run: dict[Direction, Run]
    title: str  # what the file was recognised as
    unanswered: Ids  # the ids of queries whose list is there and empty
    example: str  # the first candidate as the file writes it
    # The rows of an image and a caption as the file writes them, for a message.
    of_pair: Callable[[int, int], str]
    others: Sequence[Other]  # what else the file holds


class Run(NamedTuple):
    """What a run lists of one direction, n rows: ids int64 of queries and candidates, scores
    float64.
    """

    query: Ids
    candidate: Ids
    score: Floats
    rank: Floats | None = None  # likewise, where a file has ranks beside scores


def write(
    path: Path,
    system: System,
    count: int,
    seed: int,
    block_megabytes: float,
    progress: Progress = lambda queries: None,
) -> None:
    """Write the best candidates of every query, of both directions."""
    name = printable("".join(system.name.split())) or "run"
    generator = np.random.default_rng(seed)
    as_json = path.suffix == ".json"
    written = 0
    with atomic.replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        if as_json:
            file.write("{")
        for way, asking, answering in WAYS:
            best, scores = top(
                system.scores, way, count, generator, block_megabytes, after(progress, written)
            )
            queries = system.ids(asking).tolist()
            candidates = system.ids(answering)[best].tolist()
            for query, row, values in zip(queries, candidates, scores.tolist(), strict=True):
                key = f"{asking}:{query}"
                documents = [f"{answering}:{candidate}" for candidate in row]
                listed = zip(documents, values, strict=True)
                if as_json:
                    if written:
                        file.write(",\n")
                    file.write(f'"{key}": {json.dumps(dict(listed))}')
                else:
                    for rank, (document, value) in enumerate(listed, 1):
                        file.write(f"{key} Q0 {document} {rank} {value!r} {name}\n")
                written += 1
        if as_json:
            file.write("}\n")


def layout_of(path: Path) -> type[Layout] | None:
    """The layout of a tool that a run is in; None for a table or pairs."""
    return evaluation.judgements.rows.Rows(path, evaluation.judgements.columns.RUN).layout


def names_sides(path: Path, parts: Sequence[str] = ()) -> bool:
    """Whether a run's columns or its first ids say which are images and which captions."""
    judgements = evaluation.judgements
    table, _ = next(judgements.rows.Rows(path, judgements.columns.RUN, parts).tables())
    if "image" in table:
        return True
    names = judgements.names.Names()
    for column in (judgements.columns.QUERY, judgements.columns.DOCUMENT):
        _, sides = names.of(table[column][: judgements.appearance.ROWS])
        if (sides != judgements.names.EITHER).any():
            return True
    return False


def read(
    path: Path, names: Names | None = None, distance: bool = False, parts: Sequence[str] = ()
) -> RunFile:
    """Read a run.

    names: finds ids by how they are written. distance: whether the user says that scores are
        distances. parts: what the user types behind the file, to choose in it.
    """
    of_images: list[Run] = []
    of_captions: list[Run] = []
    rows = evaluation.judgements.rows.Rows(path, evaluation.judgements.columns.RUN, parts)
    names = names or evaluation.judgements.names.Names()
    for table, numbers in rows.tables():
        if rows.headless and numbers[:1] == 1:
            refuse_other_order(path, table)
        image, caption, asks, _ = rows.pairs(table, numbers, names)
        score, rank = scores_of(rows, table, numbers)
        refuse_left_out(rows)
        of_images.append(_part(Run(image, caption, score, rank), asks))
        of_captions.append(_part(Run(caption, image, score, rank), ~asks))
    unanswered, _ = names.of(np.array(rows.unanswered, np.str_))
    run: dict[Direction, Run] = {"i2t": _joined(of_images), "t2i": _joined(of_captions)}

    def of_pair(image: int, caption: int) -> str:
        return rows.of_pair(image, caption, names)

    is_of_ranks = rows.headless and "rank" not in rows.title and _are_ranks(run.values())
    has_no_score = rows.value == "" and not rows.headless
    if distance and (is_of_ranks or has_no_score):
        raise InputError(f"{path}: has ranks, of which the first is best; leave out --distance")
    if not distance and evaluation.judgements.columns.is_distance(rows.value):
        raise InputError(
            f"{path}: has the column {rows.value}; give --distance, which ranks the smallest first"
        )
    if is_of_ranks:
        negated = {way: listed._replace(score=-listed.score) for way, listed in run.items()}
        title = rows.title.replace("score", "rank")
        return RunFile(negated, title, unanswered, rows.example, of_pair, rows.others)
    return RunFile(run, rows.title, unanswered, rows.example, of_pair, rows.others)


def refuse_other_order(path: Path, table: Table) -> None:
    """Refuse rows without a header whose columns do not look like what their places say."""
    appearance = evaluation.judgements.appearance
    texts = [column[: appearance.ROWS].tolist() for column in table.values()]
    seen = appearance.columns(list(zip(*texts, strict=True)))
    column_of = dict(zip(table, seen, strict=True))
    query = column_of["query"]
    document = column_of["document"]
    rank = column_of.get("rank")
    value = column_of["score"]
    no_scores = [query, document]
    if rank is not None:
        no_scores.append(rank)
    has_scores_elsewhere = any(column.kind == "scores" for column in no_scores)
    has_documents_last = (
        document.kind == "ranks" and value.kind == "whole" and value.different > document.different
    )
    has_text_last = value.is_text or query.first == "Q0"
    is_wrong = has_scores_elsewhere or has_documents_last or has_text_last
    if is_wrong and len(table["query"]) >= appearance.FEWEST:
        raise InputError(
            f"{path}: its columns are in another order than {' '.join(table)}: "
            f"{appearance.described(seen)}; give it a header, such as query,candidate,score"
        )


def refuse_left_out(rows: Rows) -> None:
    """Refuse a run with a row that cannot be used: what is below it would be ranked higher."""
    if not rows.left_out:
        return
    remedy = ""
    if "no finite score" in rows.left_out.counts:
        remedy = "; where -inf marks what was not scored, delete those rows"
    raise InputError(f"{rows.path}: a run is measured whole; {rows.left_out.lines()[0]}{remedy}")


def scores_of(rows: Rows, table: Table, numbers: Ids) -> tuple[Floats, Floats | None]:
    """The scores of some rows, and their ranks if there are any. Without scores the first ranks are
    best.
    """
    score, finite = rows.values(table)
    rank = rows.ranks(table)
    if "score" not in table and rank is not None:
        rows.leave_out("no finite score", table, numbers, ~np.isfinite(rank))
        return -rank, None
    rows.leave_out("no finite score", table, numbers, ~finite)
    return score, rank


def _part(run: Run, rows: Marks) -> Run:
    part = Run(run.query[rows], run.candidate[rows], run.score[rows])
    if run.rank is None:
        return part
    return part._replace(rank=run.rank[rows])


def _joined(parts: Sequence[Run]) -> Run:
    query = np.concatenate([part.query for part in parts])
    candidate = np.concatenate([part.candidate for part in parts])
    score = np.concatenate([part.score for part in parts])
    ranks = [part.rank for part in parts if part.rank is not None]
    if not ranks:
        return Run(query, candidate, score)
    return Run(query, candidate, score, np.concatenate(ranks))


def _are_ranks(parts: Iterable[Run]) -> bool:
    """Whether what should be scores numbers each query's candidates, as MS MARCO's ranks do."""
    orders = [order_of(part.query, part.score) for part in parts if len(part.query)]
    return bool(orders) and all(order.rises and order.are_places for order in orders)


def lists(
    run: Mapping[Direction, Run],
    pool: Collection,
    name: str,
    of_pair: Callable[[int, int], str] | None = None,
) -> Lists:
    """The lists of a run within a pool, of the directions that have any.

    name: the file, for messages. of_pair: its rows of an image and a caption, see `RunFile`.
    """
    listed: dict[Direction, Listed] = {}
    for way, asking, answering in WAYS:
        if way not in run or not len(run[way].query):
            continue
        once = _once(run[way], name, asking, answering, of_pair)
        queries = pool.require(asking, once.query, name)
        candidates = pool.require(answering, once.candidate, name)
        listed[way] = Listed(queries, candidates, once.score)
    return Lists(pool.shape, listed, name, _order(run))


def _order(run: Mapping[Direction, Run]) -> Order:
    """How scores go with the order of the lists, in the direction that says it."""
    for part in run.values():
        order = order_of(part.query, part.score, _known(part.rank))
        if order != UNKNOWN_ORDER:
            return order
    return UNKNOWN_ORDER


def _known(rank: Floats | None) -> Floats | None:
    """Ranks, if they are numbers that differ."""
    if rank is None or not np.isfinite(rank).all():
        return None
    if len(np.unique(rank)) < 2:
        return None
    return rank


def _once(
    run: Run,
    name: str,
    asking: Side,
    answering: Side,
    of_pair: Callable[[int, int], str] | None,
) -> Run:
    """Each pair once, sorted by its query and its candidate, or a refusal."""
    unranked = np.flatnonzero(~np.isfinite(run.score))
    if unranked.size:
        row = unranked[0]
        raise InputError(
            f"{name}: the score of {answering} {run.candidate[row]} for {asking} {run.query[row]} is "
            f"{run.score[row]}: it cannot be ranked"
        )
    order = np.lexsort((run.candidate, run.query))
    query = run.query[order]
    candidate = run.candidate[order]
    score = run.score[order]
    is_same_query = query[1:] == query[:-1]
    is_same_candidate = candidate[1:] == candidate[:-1]
    again = np.flatnonzero(is_same_query & is_same_candidate) + 1
    contradicting = again[score[again] != score[again - 1]]
    if contradicting.size:
        row = contradicting[0]
        pair = {asking: int(query[row]), answering: int(candidate[row])}
        shown = f"{answering} {pair[answering]} for {asking} {pair[asking]}"
        if of_pair is not None:
            shown = of_pair(pair["image"], pair["caption"])
        raise InputError(
            f"{name}: lists one candidate twice for one query, with different scores: {shown}; leave one"
        )
    if again.size:
        warnings.warn(
            f"{name}: {counted(again.size, 'row')} repeated with the same score; one of each counts",
            InputWarning,
            stacklevel=2,
        )
    query = np.delete(query, again)
    candidate = np.delete(candidate, again)
    return Run(query, candidate, np.delete(score, again))

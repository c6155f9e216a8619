"""The vectors that VLM2Vec's evaluation of MMEB keeps of a data set: `NAME_qry` and `NAME_tgt`,
with each query's candidates in `NAME_info.jsonl`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from pipeline.extensions.leaderboards.mmeb import (
    INFO as INFO_START,
    Query,
    distinct,
    predicted,
    queries_of,
    reading,
)
from pipeline.extensions.leaderboards.multi_vectors import (
    Candidates,
    maxsim,
    require_kept,
    tokens_of,
)
from pipeline.foundation.evaluation.judgements.names import Names
from pipeline.foundation.evaluation.retrieval import Collection, Ids
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.judge.systems.scores import runs
from pipeline.judge.systems.scores.foreign import opening
from pipeline.judge.systems.scores.foreign.arrays import require_stored
from pipeline.judge.systems.scores.foreign.file_sets import FileSet, Typed
from pipeline.judge.systems.scores.foreign.identified import Scores, in_words
from pipeline.judge.systems.scores.foreign.numpy_files import read_pickle
from pipeline.judge.systems.scores.judged import Columns
from pipeline.judge.systems.scores.runs import Run

QUERIES = "_qry"
CANDIDATES = "_tgt"
INFO = "_info.jsonl"
PREDICTED = "_pred.jsonl"
# What a query is ranked among -> in words.
POOLS = {"local": "its own candidates", "global": "all candidates"}


class EncodedSet(FileSet):
    """`NAME_qry` with `NAME_tgt` and `NAME_info.jsonl`: each query is ranked among its own
    candidates, or among all.

    VLM2Vec decides it by a setting that none of the files has. `NAME_pred.jsonl` beside them shows
    it; `NAME_qry:local` or `NAME_qry:global` says it.
    """

    @classmethod
    def recognises(cls, typed: Typed) -> bool:
        if len(typed) > 1:
            endings = {_ending(path) for path, _ in typed}
            path, _ = typed[0]
            return endings == {QUERIES, CANDIDATES} and _beside(path, INFO).is_file()
        path, _ = typed[0]
        ending = _ending(path)
        if not ending or not path.is_file():
            return False
        if ending == INFO:
            with reading(path) as text:
                return bool(INFO_START.match(next(text, "")))
        return opening.kind_of(path) == "pickle"

    def scores(self, typed: Typed, columns: Columns, normalise: bool) -> Scores:
        path, parts = typed[0]
        _require_all(path)
        if len(typed) > 1:
            raise InputError(
                f"{path}: name {_beside(path, QUERIES)} alone; the candidates beside it are read with it"
            )
        if columns.manifest is not None:
            raise InputError(f"{path}: MMEB's files say what is right; leave out --manifest")
        info = _beside(path, INFO)
        with reading(info) as text:
            asked = queries_of(text)
        if not asked:
            raise InputError(f"{info}: is empty, expected a line for each query")
        queries = _queries(path, len(asked))
        held = read_pickle(_beside(path, CANDIDATES)).arrays
        require_stored(held.values(), _beside(path, CANDIDATES))
        for name, array in held.items():
            if len(array.shape) not in (1, 2):
                raise InputError(
                    f"{_beside(path, CANDIDATES)}: {name[:40]!a} is {array}, expected [D], or [tokens, D]"
                )
        vectors = {name: array.read() for name, array in held.items()}
        _require_vectors(path, asked, vectors)
        own = _pool_of_queries(path, parts, asked, [*vectors])
        if normalise:
            queries = _of_length_1(queries)
            vectors = {name: _of_length_1(vector) for name, vector in vectors.items()}
        labels = _ids([name for query in asked for name in query.labels])

        def ranked(among: str, padded_to: int = 0) -> Scores:
            with refusing(InputError, lambda error: f"{path}: {error}"):
                if among == "global":
                    run = _among_all(queries, vectors, padded_to)
                else:
                    run = _among_own(queries, vectors, asked, padded_to)
            candidates = np.union1d(run.candidate, labels)
            owner = np.full(len(queries), -1, np.int64)
            pool = Collection(candidates, np.arange(len(queries)), owner)
            lists = runs.lists({"t2i": run}, pool, str(path))
            lists.has_all_queries = True
            lists.are_whole = True
            said = in_words(
                f"MMEB's vectors of {len(queries):,} queries and {len(vectors):,} candidates",
                f"each query is ranked among {POOLS[among]}",
            )
            if queries.ndim == 3:
                said = in_words(said, "MaxSim over tokens, without rows of zeros")
            if len(candidates) != len(vectors):
                said = in_words(said, _counted(asked, len(vectors), len(candidates)))
            return Scores(
                lists, pool, True, said, of_vectors=True, of_anything=True, judgements=info
            )

        otherwise = {POOLS[pool]: partial(ranked, pool) for pool in POOLS if pool != own}
        if queries.ndim == 3:
            longest = max(len(np.atleast_2d(vector)) for vector in vectors.values())
            otherwise["padding"] = partial(ranked, own, longest)
        return ranked(own)._replace(otherwise=otherwise)


def _ending(path: Path) -> str:
    """How the name of a file of a data set ends; "" for any other file."""
    for ending in (QUERIES, CANDIDATES, INFO):
        if path.name.endswith(ending):
            return ending
    return ""


def _beside(path: Path, ending: str) -> Path:
    """Another file of the same data set."""
    return path.with_name(path.name.removesuffix(_ending(path)) + ending)


def _require_all(path: Path) -> None:
    """Refuse a file of a data set that lacks another one beside it, or that is not the queries'."""
    files = [_beside(path, ending) for ending in (QUERIES, CANDIDATES, INFO)]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise InputError(
            f"{path}: lacks {' and '.join(missing)} beside it; MMEB's evaluation writes NAME_qry, NAME_tgt "
            "and NAME_info.jsonl into one folder"
        )
    if _ending(path) != QUERIES:
        raise InputError(f"{path}: holds no queries; name {files[0]}, which is read with it")


def _queries(path: Path, count: int) -> np.ndarray:
    """The vectors of all queries, [Q, D], or of their tokens, [Q, L, D]."""
    arrays = read_pickle(path).arrays
    if len(arrays) != 1:
        raise InputError(f"{path}: holds {len(arrays)} arrays, expected one of all queries")
    (array,) = arrays.values()
    if len(array.shape) not in (2, 3) or array.shape[0] != count:
        raise InputError(
            f"{path}: is {array}, expected [{count:,}, D], or [{count:,}, tokens, D], a row for each line of "
            f"{_beside(path, INFO).name}"
        )
    return array.read()


def _require_vectors(path: Path, asked: Sequence[Query], vectors: Mapping[str, np.ndarray]) -> None:
    """Refuse candidates that have no vector."""
    for number, query in enumerate(asked, start=1):
        for name in query.candidates:
            if name not in vectors:
                raise InputError(
                    f"{_beside(path, CANDIDATES)}: lacks the candidate {name[:40]!a} of line {number} of "
                    f"{_beside(path, INFO).name}: it is of another run"
                )


def _counted(asked: Sequence[Query], vectors: int, candidates: int) -> str:
    """Say why the pool has another number of candidates than there are vectors."""
    listed = len({*chain.from_iterable(query.candidates for query in asked)})
    again = candidates - listed
    said = f"the pool has {candidates:,}: {listed:,} of these {vectors:,} are in lists"
    if again:
        said += f", {again:,} are listed again by a query, or right and in no list"
    return said


def _pool_of_queries(
    path: Path, parts: Sequence[str], asked: Sequence[Query], names: Sequence[str]
) -> str:
    """What each query is ranked among, a key of `POOLS`. names: all candidates."""
    if parts:
        (pool,) = parts[:1]
        if len(parts) > 1 or pool not in POOLS:
            raise InputError(
                f"{path}:{':'.join(parts)}: expected :local or :global behind the file"
            )
        return pool
    file = _beside(path, PREDICTED)
    if file.is_file():
        with reading(file) as text:
            lengths = [len(ranked) for ranked in predicted(text)]
        if len(lengths) != len(asked):
            raise InputError(
                f"{file}: has {len(lengths):,} queries, {_beside(path, INFO).name} {len(asked):,}: it is of "
                "another run"
            )
        are_own = [length == query.listed for length, query in zip(lengths, asked, strict=True)]
        return "local" if all(are_own) else "global"
    every = sorted(names)
    fewest = min(len(query.candidates) for query in asked)
    most = max(len(query.candidates) for query in asked)
    are_all = fewest == most == len(every)
    if are_all and all(sorted(query.candidates) == every for query in asked):
        return "global"
    listed = f"{fewest:,}"
    if most > fewest:
        listed += f" to {most:,}"
    raise InputError(
        f"{path}: a query of it lists {listed} of {len(every):,} candidates, and no {file.name} shows whether "
        f"it was ranked among these or among all; type {path}:local or {path}:global"
    )


def _of_length_1(vectors: np.ndarray) -> np.ndarray:
    """Vectors divided by their lengths; those of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths, lengths, 1)


def _among_all(queries: np.ndarray, vectors: Mapping[str, np.ndarray], padded_to: int) -> Run:
    """The scores of each query with all candidates."""
    require_kept(len(queries), len(vectors))
    candidates = Candidates.of([tokens_of(vector) for vector in vectors.values()], padded_to)
    scores = [maxsim(tokens_of(query), candidates) for query in queries]
    ids = _ids([*vectors])
    of_query = np.repeat(np.arange(len(queries)), len(ids))
    of_candidate = np.tile(ids, len(queries))
    return Run(of_query, of_candidate, np.concatenate(scores).astype(float))


def _among_own(
    queries: np.ndarray,
    vectors: Mapping[str, np.ndarray],
    asked: Sequence[Query],
    padded_to: int,
) -> Run:
    """The scores of each query with its candidates; one that comes twice keeps both places."""
    tokens = {name: tokens_of(vector) for name, vector in vectors.items()}
    of_candidate = []
    scores = []
    for vector, query in zip(queries, asked, strict=True):
        names = [*dict.fromkeys(query.candidates)]
        own = Candidates.of([tokens[name] for name in names], padded_to)
        score_of = dict(zip(names, maxsim(tokens_of(vector), own), strict=True))
        scores.append(np.array([score_of[name] for name in query.candidates]))
        of_candidate.append(_ids(distinct(query.candidates)))
    counts = [len(query.candidates) for query in asked]
    of_query = np.repeat(np.arange(len(queries)), counts)
    return Run(of_query, np.concatenate(of_candidate), np.concatenate(scores).astype(float))


def _ids(names: Sequence[str]) -> Ids:
    ids = Names(sided=False)
    return np.array([ids.one(name) for name in names], np.int64)

"""Ranking on the workers of a cluster: the same numbers, also when one of them dies; memory alone
is ranked here.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from sorting import noisy_pairs
from waiting import until

from pipeline.foundation.compute import by_path, cluster
from pipeline.foundation.evaluation.metrics import evaluate, parse_all
from pipeline.foundation.evaluation.metrics.standard import of_pool
from pipeline.foundation.evaluation.retrieval import (
    Embeddings,
    Protocol,
    Relevance,
    as_similarity,
    workers,
)
from pipeline.foundation.evaluation.retrieval.embeddings import Enlarged
from pipeline.foundation.evaluation.retrieval.similarity import open_npy
from pipeline.foundation.files import atomic
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Evaluate
from pipeline.judge.systems.fusion.methods import FUSIONS

pytestmark = pytest.mark.usefixtures("forkserver")

IMAGES, EACH = 90, 3
OWNER = np.repeat(np.arange(IMAGES), EACH)
SETTINGS = Evaluate(resamples=10, seed=0, block_megabytes=0.05)


@pytest.fixture(scope="module")
def there() -> Iterator[Any]:
    """A running cluster of two workers, by TCP."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as started:
        assert started.scheduler_address.startswith("tcp://")
        yield started


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task is a block or two."""
    monkeypatch.setattr(workers, "CELLS_A_TASK", 5000)


@pytest.fixture
def nothing_here(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on, this process counts no block itself."""

    def fail(*arguments: Any) -> None:
        raise AssertionError("a block was counted here")

    return lambda: monkeypatch.setattr(workers, "share", fail)


def vectors(folder: Path, name: str = "v", images: int = IMAGES, seed: int = 0) -> Embeddings:
    """Mapped from files, some of them equal."""
    sides = noisy_pairs(images, EACH, 1.5, seed)
    sides[0][5], sides[1][7] = sides[0][3], sides[1][20]
    paths = [folder / f"{name}{number}.npy" for number in range(2)]
    for path, side in zip(paths, sides, strict=True):
        np.save(path, side)
    return Embeddings(*paths)


def matrix(folder: Path, order: str = "C") -> Any:
    scores = np.random.default_rng(1).integers(0, 40, (IMAGES, IMAGES * EACH)).astype(np.float32)
    np.save(folder / "m.npy", np.asarray(scores, order=order))  # type: ignore[call-overload]
    return as_similarity(folder / "m.npy")


def stored(folder: Path, **how: Any) -> Any:
    found = vectors(folder)
    array = zarr.create_array(
        folder / "m.zarr", shape=found.shape, dtype="float32", chunks=(32, 100), **how
    )
    array[:] = found.block(slice(None), slice(None))
    return as_similarity(folder / "m.zarr")


SOURCES: dict[str, Callable[[Path], Any]] = {
    "vectors": vectors,
    "vectors in float64": lambda folder: Embeddings(
        vectors(folder).images, vectors(folder).captions, double=True
    ),
    "distractors": lambda folder: Enlarged(vectors(folder), [vectors(folder, "w", 40, 1)]),
    "a matrix": matrix,
    "a matrix, columns first": lambda folder: matrix(folder, "F"),
    "a store": lambda folder: stored(folder, compressors=None),
    "a compressed store": stored,
    "an ensemble": lambda folder: FUSIONS["mean"]([vectors(folder), matrix(folder)], [0.5, 0.5]),
    "an ensemble by rank": lambda folder: FUSIONS["rank"](
        [vectors(folder), matrix(folder)], [0.5, 0.5]
    ),
    "an ensemble of z-scores": lambda folder: FUSIONS["zscore"](
        [vectors(folder), matrix(folder)], [0.5, 0.5]
    ),
}


def measured(source: Any, truth: Any, rules: str | Protocol = "all") -> str:
    reported: list[int] = []
    found = evaluate(
        source, truth, rules, block_megabytes=SETTINGS.block_megabytes, progress=reported.append
    )
    assert reported[-1] == source.shape[0]
    every = of_pool(
        parse_all(["nDCG@10", "AP", "mAP@R", "MRR", "R@3"]),
        source,
        truth,
        found,
        rules,
        SETTINGS,
        lambda images: None,
    )
    ranks = [
        [
            getattr(getattr(one, way), name).tolist()
            for way in ("i2t", "t2i")
            for name in ("query", "greater", "equal", "right")
        ]
        for one in found.ranks
    ]
    return repr((found.as_dict(), every, ranks))


def graded(shape: tuple[int, int]) -> Relevance:
    """Several right answers of two grades."""
    pairs = np.unique(np.random.default_rng(2).integers(0, np.array(shape), (400, 2)), axis=0)
    return Relevance.of_pairs(*pairs.T, shape, 1.0 + np.arange(len(pairs)) % 2)


@pytest.mark.parametrize("name", SOURCES)
def test_the_same_numbers_as_here(
    name: str, there: Any, small: None, nothing_here: Callable[[], None], tmp_path: Path
) -> None:
    source = SOURCES[name](tmp_path)
    owner = source.caption_image(OWNER) if name == "distractors" else OWNER
    cases = [(owner, "all")]
    if name != "distractors":
        cases.append((owner, Protocol("3fold", captions_per_image=2, folds=3)))
    if name == "vectors":
        cases.append((graded(source.shape), "all"))
    here = [measured(source, *case) for case in cases]
    if name == "an ensemble of z-scores":  # its means and deviations are computed here
        assert here == _there(there, source, cases)
        return
    nothing_here()
    assert here == _there(there, source, cases)


def _there(there: Any, source: Any, cases: list[Any]) -> list[str]:
    with cluster.running(there.scheduler_address) as place, workers.counted_on(place):
        return [measured(source, *case) for case in cases]


def test_scores_in_memory_are_ranked_here(
    there: Any, nothing_here: Callable[[], None], tmp_path: Path
) -> None:
    scores = np.random.default_rng(0).standard_normal((IMAGES, IMAGES * EACH))
    with cluster.running(there.scheduler_address) as place, workers.counted_on(place):
        assert evaluate(scores, OWNER) == evaluate(scores.copy(), OWNER)
        nothing_here()
        with pytest.raises(AssertionError, match="counted here"):
            evaluate(scores, OWNER)


def test_what_a_worker_does_not_see_or_refuses_is_one_line(
    there: Any, small: None, tmp_path: Path
) -> None:
    source, bad = vectors(tmp_path), matrix(tmp_path)
    with cluster.running(there.scheduler_address) as place, workers.counted_on(place):
        (tmp_path / "v0.npy").rename(tmp_path / "elsewhere.npy")
        with pytest.raises(InputError, match=r"worker \S+ on \S+: \S+v0.npy: is missing"):
            evaluate(source, OWNER)
        values = np.load(tmp_path / "m.npy")
        values[4, 9] = np.nan
        np.save(tmp_path / "m.npy", values)
        with pytest.raises(InputError, match=r"row 4 .* column 9 .* is nan: it cannot be ranked"):
            evaluate(bad, OWNER)


def test_a_file_that_was_replaced_is_refused(
    there: Any, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one worker would count the blocks of other scores than another, or than the best right
    ones are of.
    """
    packed = by_path.packed

    def replaced_then(replace: Callable[[], object]) -> Callable[[Any], bytes | None]:
        def both(counter: Any) -> bytes | None:
            content = packed(counter)
            replace()
            return content

        return both

    def write(array: Path) -> None:
        array.rename(tmp_path / "before")
        np.save(array, np.ones((IMAGES, IMAGES * EACH), np.float32))

    for source, path, again in (
        (matrix(tmp_path), tmp_path / "m.npy", write),
        (stored(tmp_path), tmp_path / "m.zarr", lambda path: stored(tmp_path, overwrite=True)),
    ):
        monkeypatch.setattr(
            by_path, "packed", replaced_then(lambda path=path, again=again: again(path))
        )
        with (
            cluster.running(there.scheduler_address) as place,
            workers.counted_on(place),
            pytest.raises(InputError, match=rf"{path}: is missing or another file"),
        ):
            evaluate(source, OWNER)


@pytest.mark.parametrize("how", [{"compressors": None}, {}], ids=["mapped", "compressed"])
def test_a_store_that_is_replaced_after_it_was_opened_is_refused(
    how: dict[str, Any], tmp_path: Path
) -> None:
    """A worker opens it once: its blocks would be of both."""
    source = stored(tmp_path, **how)
    source.block(slice(0, 8), slice(0, 8))
    (tmp_path / "later").mkdir()
    stored(tmp_path / "later", **how)
    atomic.take_place(tmp_path / "later" / "m.zarr", tmp_path / "m.zarr")
    cells = np.array([40])
    for read in (
        lambda: source.block(slice(32, 64), slice(0, 8)),
        lambda: source.pairs(cells, cells),
    ):
        with pytest.raises(InputError, match=r"m\.zarr: is missing or another file"):
            read()


def test_a_file_that_was_replaced_since_it_was_mapped_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.zeros((2, 2), np.float32))
    mapped = open_npy(tmp_path / "m.npy")
    np.save(tmp_path / "other.npy", np.ones((2, 2), np.float32))
    (tmp_path / "other.npy").replace(tmp_path / "m.npy")
    with pytest.raises(InputError, match=r"m\.npy: is missing or another file"):
        by_path.packed(mapped[:1])


def test_what_all_tasks_share_is_small_and_sent_without_a_warning(
    there: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    each = cluster.DaskExecutor.each

    def noted(self: Any, *arguments: Any, common: bytes, **more: Any) -> Any:
        sizes.append(len(common))
        return each(self, *arguments, common=common + bytes(2 * 10**7), **more)

    monkeypatch.setattr(cluster.DaskExecutor, "each", noted)
    with (
        cluster.running(there.scheduler_address) as place,
        workers.counted_on(place),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        images = 2000
        evaluate(vectors(tmp_path, images=images), np.repeat(np.arange(images), EACH))
    assert sizes[0] < 70 * images * EACH


def hold(begun: Path, over: Path) -> None:
    """Make this process, a worker, count only one task before a file is there; say when it has the
    next.
    """
    share, calls = workers.share, 0

    def held(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 1:
            (begun / str(os.getpid())).touch()
            until(over.exists, "a worker to be killed")
        return share(*arguments)

    held.before = share  # type: ignore[attr-defined]
    workers.share = held


def let_go() -> None:
    """Make this process count as before `hold`."""
    workers.share = getattr(workers.share, "before", workers.share)


@pytest.mark.parametrize("count", [2, 1])
def test_a_worker_is_killed_midway(count: int, there: Any, small: None, tmp_path: Path) -> None:
    """Of one alone, what all tasks share is sent again. Starting workers takes longest: two are
    there already.
    """
    source = vectors(tmp_path)
    here = measured(source, OWNER)
    begun, over, done = tmp_path / "begun", tmp_path / "over", []
    begun.mkdir()
    with (
        cluster.running(there.scheduler_address) if count == 2 else cluster.local(1) as place,
        workers.counted_on(place),
    ):
        place.client.run(hold, begun, over)

        def progress(rows: int) -> None:
            if not done:
                until(lambda: any(begun.iterdir()), "a worker's second task")
                killed = int(next(begun.iterdir()).name)
                os.kill(killed, signal.SIGKILL)
                over.touch()
                done.append(killed)

        found = evaluate(source, OWNER, block_megabytes=SETTINGS.block_megabytes, progress=progress)
        assert measured(source, OWNER) == here
        assert done[0] not in place.client.run(os.getpid).values()
        place.client.run(let_go)
    assert repr(found.as_dict()) in here

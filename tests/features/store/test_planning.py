"""What a plan costs: it grows as the number of images does, in a store that is made, resumed or
grown.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from counted import Counted
from new_stores import prepare

from pipeline.foundation.manifest.columns import NO_FILE
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.store import Plan, StoreLayout, Wanted, ledger, making, plan
from pipeline.make.features.store.layout import ABSENT
from pipeline.make.features.store.planning import _find_by_content

SHARD = 10
OTHER_IDS = {"ids": "others", "engine": "test"}


def made(path: Path, images: int, finished: int) -> Wanted:
    """A store of which the first shards are finished by the ledger; no file of a shard is there."""
    ids, sizes, layout = (
        np.arange(images),
        np.full(images, NO_FILE),
        StoreLayout(images, 1, 1, SHARD),
    )
    fingerprint = {"ids": str(images), "engine": "test"}
    for number in prepare(path, layout, fingerprint, ids, sizes)[:finished]:
        ledger.write(path, ledger.LedgerEntry(number, number * SHARD, SHARD, {}, {}, {}, {}, ""))
    return Wanted(ids.view(Counted), sizes, fingerprint, layout, grows=True)


def resumed(path: Path, images: int) -> Plan:
    return plan(path, made(path, images, images // SHARD // 2))


def grown(path: Path, images: int) -> Plan:
    """Every second image went, as many came."""
    before = made(path, images, images // SHARD)
    ids = np.concatenate([np.arange(0, images, 2), np.arange(images, images + images // 2)]).view(
        Counted
    )
    return plan(
        path,
        Wanted(ids, before.sizes, OTHER_IDS, before.layout, grows=True),
    )


def at_once(path: Path, images: int) -> Plan:
    ids = np.arange(images).view(Counted)
    return plan(
        path, Wanted(ids, np.ones(images), {}, StoreLayout(images, 1, 1, SHARD), grows=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("planned", [at_once, resumed, grown])
def test_a_plan_and_its_tasks_grow_as_the_images_do(
    planned: Callable[[Path, int], Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = ledger.column
    monkeypatch.setattr(ledger, "column", lambda path, name: column(path, name).view(Counted))
    numbers = []
    for images in (200, 2000):
        Counted.numbers = 0
        todo = planned(tmp_path / f"{images}.zarr", images)
        tasks = list(tasks_of(todo, np.arange(images + images // 2).view(Counted)))
        assert sum(len(task.extracted) for task in tasks) == todo.count > 0
        numbers.append(Counted.numbers)
    assert 0 < numbers[1] < 12 * numbers[0]


def tasks_of(todo: Plan, ids: np.ndarray) -> Any:
    """An extraction's tasks, of a job of which nothing else is asked."""
    from pipeline.make.features.extraction import ExtractionJob

    job = SimpleNamespace(
        store=Path("s.zarr"),
        fingerprint=lambda engine, sources: {},
        read=lambda sources, places: list(places),
        engine=None,
        batch_size=1,
        on_error="fail",
        threads=None,
    )
    return ExtractionJob.tasks(job, None, SimpleNamespace(ids=ids), todo, Path("s.zarr"))  # type: ignore[arg-type]


def test_a_store_of_which_more_than_half_is_not_wanted_is_not_grown(tmp_path: Path) -> None:
    before = made(tmp_path / "s.zarr", 2 * SHARD, 2)
    for lost, changed in (
        (SHARD, ""),
        (SHARD + 1, "11 of its 20 images are not in the manifest"),
    ):
        ids = before.ids + lost
        todo = plan(tmp_path / "s.zarr", replace(before, ids=ids, fingerprint=OTHER_IDS))
        assert (todo.changed, todo.count) == (changed, lost)
    failed = dict.fromkeys(range(SHARD), "cut short")  # it is wanted, and tried again
    for number in range(2):
        reasons = {row + number * SHARD: reason for row, reason in failed.items()}
        entry = ledger.LedgerEntry(number, number * SHARD, SHARD, reasons, {}, {}, {}, "")
        ledger.write(tmp_path / "s.zarr", entry)
    todo = plan(tmp_path / "s.zarr", replace(before, retry_failed=True))
    assert (todo.changed, todo.count) == ("", 2 * SHARD)


@pytest.mark.slow
def test_a_task_is_as_small_in_a_store_that_has_grown(tmp_path: Path) -> None:
    sizes = [
        max(
            len(pickle.dumps(task))
            for task in tasks_of(grown(tmp_path / f"{images}.zarr", images), np.arange(2 * images))
        )
        for images in (200, 2000)
    ]
    assert sizes[1] < sizes[0] + 50


def test_a_photograph_that_is_not_known_is_that_of_no_row(tmp_path: Path) -> None:
    layout = made(tmp_path / "s.zarr", SHARD, 0).layout
    ledger.write(
        tmp_path / "s.zarr", ledger.LedgerEntry(0, 0, SHARD, {}, {}, {0: "", 1: "known"}, {}, "")
    )
    rows = ledger.rows_of_sources(tmp_path / "s.zarr", layout, ["", "known", "another"])
    assert rows.tolist() == [ABSENT, 1, ABSENT]


def test_photographs_of_every_finished_shard_are_known(tmp_path: Path) -> None:
    store = tmp_path / "s.zarr"
    layout = made(store, 3 * SHARD, 0).layout
    for shard, sources in ((0, {0: "a", 1: "b"}), (2, {2 * SHARD: "c"})):
        entry = ledger.LedgerEntry(shard, shard * SHARD, SHARD, {}, {}, sources, {}, "")
        ledger.write(store, entry)
    assert ledger.sources(store, layout) == {0: "a", 1: "b", 2 * SHARD: "c"}
    rows = ledger.rows_of_sources(store, layout, ["c", "b", "none", "a"])
    assert rows.tolist() == [2 * SHARD, 1, ABSENT, 0]


def test_equal_photographs_have_a_row_each_in_the_order_of_the_rows() -> None:
    recorded = np.array(["a", "a", "b", "a", ""], object)
    for rows, wanted, expected in (
        ([ABSENT] * 3, ["a", "a", "a"], [0, 1, 3]),
        ([ABSENT, 0], ["a", "a"], [1, 0]),
        ([2, ABSENT], ["b", "b"], [2, ABSENT]),
        ([ABSENT], [""], [ABSENT]),
    ):
        row_of_id = np.array(rows)
        _find_by_content(row_of_id, np.array(wanted, object), recorded)
        assert row_of_id.tolist() == expected, (rows, wanted)


@pytest.mark.parametrize(
    ("file", "difference"),
    [
        ("zarr.json", "not a feature store of this pipeline"),
        ("record.json", "record.json: damaged"),
    ],
)
def test_a_refusal_of_a_damaged_store_names_it_once(
    file: str, difference: str, tmp_path: Path
) -> None:
    store = tmp_path / "s.zarr"
    wanted = made(store, SHARD, 0)
    (store / file).write_text("{")
    todo = plan(store, wanted)
    message = f"{store}: {difference}.*; --if-changed redo replaces it"
    with pytest.raises(InputError, match=message) as refused, making(store, wanted, todo):
        pass
    assert str(refused.value).count(str(store)) == 1

"""Feature stores: what is written is read, by us and by zarr alone, and what is damaged is seen."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import forged
import numpy as np
import pytest
import zarr
from folders import tree
from new_stores import prepare, put_chunk
from numcodecs.zstd import Zstd

from pipeline.foundation.files import atomic, blake
from pipeline.foundation.files.compared import DIFFERS
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest.columns import NO_FILE
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.store import (
    Extra,
    FeatureStore,
    ItemFormat,
    Shard,
    StoreError,
    StoreLayout,
    exclusive,
    layout as layouts,
    ledger,
    reader,
    shard_file,
    verify,
    write_shard,
)
from pipeline.make.features.store.layout import ABSENT, find
from pipeline.make.features.store.shard_file import all_finite
from pipeline.make.features.store.writer import write_failures

IDS = np.arange(100, 111)
SIZES = np.arange(1000, 1011)  # bytes of the image files
MADE = {"ids": "digest", "engine": "test"}
MADE_FROM = digest(MADE)


def layout(compressor: str = "none") -> StoreLayout:
    return StoreLayout(
        11,
        3,
        4,
        shard_rows=4,
        compressor=compressor,
        extras={"boxes": Extra((4,), "float32"), "labels": Extra((), "int16")},
    )


def fill(
    path: Path, sizes: StoreLayout, shards: list[int] | None = None, made_from: str = MADE_FROM
) -> None:
    """Image i has 1 + i % 3 items of value i; image 5 failed; image 0 is all zeros."""
    for number in prepare(path, sizes, MADE, IDS, SIZES) if shards is None else shards:
        shard = Shard.empty(sizes, number)
        for row in shard.rows:
            if row == 5:
                shard.fail(row, "not an image")
                continue
            n = 1 + row % 3
            shard.fill(
                row,
                np.full((n, 4), row, np.float32),
                (row + 1, 2),
                {"boxes": np.full((n, 4), row, np.float32), "labels": np.full(n, row)},
                int(SIZES[row]),
            )
        write_shard(path, sizes, shard, made_from)


@pytest.fixture(params=["none", "zstd"], scope="module")
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that `fill` has filled. Change a copy of it."""
    path = tmp_path_factory.mktemp("filled") / "s.zarr"
    fill(path, layout(request.param))
    return path


@pytest.fixture
def made(filled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(filled, tmp_path / "s.zarr", symlinks=True)


@pytest.mark.specification
def test_reads_any_rows_in_any_order(made: Path) -> None:
    store = FeatureStore(made)
    rows = np.array([10, 0, 7, 7, 2])
    features, counts = store.read(rows)
    assert features.dtype == np.float16
    assert counts.tolist() == [2, 1, 2, 2, 3]
    for values, count, row in zip(features, counts, rows, strict=True):
        assert (values[:count] == row).all()
        assert (values[count:] == 0).all()
    assert store.extra("boxes", np.array([8]))[0].tolist() == [[8.0] * 4] * 3
    assert store.extra("labels", np.array([9, 1])).tolist() == [[9, 0, 0], [1, 1, 0]]
    assert store.done.tolist() == [row != 5 for row in range(11)]


def test_few_files_stay_open_and_none_after_the_store(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened() -> set[str]:
        """Those of its files that this process has open, one that was removed too."""
        links = (link for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
        return {path for path in map(os.readlink, links) if str(made) in path}

    monkeypatch.setattr("pipeline.make.features.store.reader.OPEN", 2)
    store, rows = FeatureStore(made), np.array([10, 0, 7, 2, 8, 1])
    for _ in range(2):
        assert (store.read(rows)[0][:, 0, 0] == rows).all()
        assert opened() == {
            str(made),
            *(str(made / "features" / "c" / shard / "0" / "0") for shard in "12"),
        }
    (
        made / "features" / "c" / "2" / "0" / "0"
    ).unlink()  # as a repair does before another file takes its name
    assert (store.read(np.array([10]))[0][0, 0] == 10).all()
    del store
    assert not opened()


@pytest.mark.slow
def test_a_store_that_is_replaced_while_it_is_opened_is_no_mixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The description of one with the features of another."""
    path, other = tmp_path / "s.zarr", replace(layout(), dtype="float32")
    fill(path, layout())
    fill(tmp_path / "other.zarr", other)
    header = reader.read_header

    def replaced_then(store: Path) -> Any:
        found = header(store)
        if (tmp_path / "other.zarr").exists():
            atomic.take_place(tmp_path / "other.zarr", path)
        return found

    monkeypatch.setattr(reader, "read_header", replaced_then)
    with pytest.raises(
        StoreError, match="was replaced while it was opened; run the same command again"
    ):
        FeatureStore(path)
    assert FeatureStore(path).layout == other


def test_reads_into_a_dirty_buffer(made: Path) -> None:
    out = np.full((2, 3, 4), np.nan, np.float16)
    FeatureStore(made).read(np.array([1, 3]), out)
    assert out[:, 2].tolist() == [[0.0] * 4] * 2
    for wrong in (np.empty((2, 3, 4), np.float32), np.empty((3, 3, 4), np.float16), out[:, ::-1]):
        with pytest.raises(ValueError, match="out: expected"):
            FeatureStore(made).read(np.array([1, 3]), wrong)


@pytest.mark.specification
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_named_with_its_image_and_row(
    tmp_path: Path, dtype: str, value: float
) -> None:
    path, sizes = tmp_path / "s.zarr", replace(layout(), dtype=dtype)
    fill(path, sizes)
    store, rows = FeatureStore(path), np.array([8, 6, 8])
    zarr.open_group(path, mode="r+")["features"][6, 0, 3] = value  # type: ignore[index]
    with pytest.raises(
        StoreError, match=r"s\.zarr: image 106 \(row 6\) has a value that is not finite in item 0"
    ):
        store.read(rows)
    assert store.read(np.array([8, 7]))[1].tolist() == [3, 2]


@pytest.mark.slow
def test_every_float16_is_finite_or_not() -> None:
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    assert [all_finite(value) for value in every[:, None]] == np.isfinite(every).tolist()


@pytest.mark.specification
def test_is_plain_zarr(made: Path) -> None:
    store = FeatureStore(made)
    group = zarr.open_group(made, mode="r")
    whole = np.asarray(group["features"][:])  # type: ignore[index]
    good = np.flatnonzero(store.done)
    assert np.array_equal(whole[good], store.read(good)[0])
    assert np.array_equal(group["ids"][:], IDS)  # type: ignore[index]
    record = json.loads((made / "record.json").read_text())
    assert record["request"]["engine"] == MADE["engine"]
    assert record["made_from"]["images"]["identity"] == MADE["ids"]


def test_refuses_rows_without_features(made: Path) -> None:
    with pytest.raises(ValueError, match="row 5 failed"):
        FeatureStore(made).read(np.array([4, 5]))
    for rows in ([-1], [11]):
        with pytest.raises(IndexError, match="expected 0 to 10"):
            FeatureStore(made).read(np.array(rows))


def test_float16_overflow_is_a_failed_image_of_no_source() -> None:
    shard = Shard.empty(layout(), 0)
    for row, value in enumerate((1e6, -1e6, np.nan, -6e4)):
        features = np.array([[0, value, 0, 0]], np.float32)
        shard.fill(row, features, (1, 1), {}, source=str(row))
    assert set(shard.failed) == {0, 1, 2}
    assert shard.sources == {3: "3"}


def test_failures_are_listed_by_the_manifests_rows(made: Path) -> None:
    rows, names = np.array([10, 5, 0]), ["k.jpg", "f.jpg", "a.jpg"]
    assert write_failures(made, layout(), names, rows) == {1: "not an image"}
    assert (made / "failures.csv").read_text() == "row,file,reason\n1,f.jpg,not an image\n"


def test_rows_are_found_by_ids_in_any_order() -> None:
    ids = np.array([7, 5, 6, 9, 8])
    assert find(ids, np.array([8, 0, 10, 7])).tolist() == [4, ABSENT, ABSENT, 0]
    assert find(np.arange(0), np.array([8])).tolist() == [ABSENT]


def test_a_size_that_is_not_known_is_no_other_one() -> None:
    before = np.array([5, 5, NO_FILE, NO_FILE, 5])
    current = np.array([5, 6, 5, NO_FILE, NO_FILE])
    assert ledger.other_files(before, current).tolist() == [False, True, False, False, False]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dimension": 5}, "its dimension is 4, the head was trained with 5"),
        ({"made": {"engine": "other"}}, "its engine is 'test', the head was trained with 'other'"),
    ],
)
def test_a_head_takes_items_of_its_own_kind_alone(
    made: Path, change: dict[str, Any], said: str
) -> None:
    store = FeatureStore(made)
    trained_with = ItemFormat.of(store)
    trained_with.require(store)
    with pytest.raises(StoreError, match=said):
        replace(trained_with, **change).require(store)


def test_a_shard_with_an_image_left_out_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    prepare(path, layout(), MADE, IDS, SIZES)
    with pytest.raises(ValueError, match="row 0 was neither filled nor failed"):
        write_shard(path, layout(), Shard.empty(layout(), 0), MADE_FROM)
    assert ledger.pending(path, layout()) == [0, 1, 2]


def test_unfinished_is_refused_and_resumed(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    assert prepare(path, layout(), MADE, IDS, SIZES) == [0, 1, 2]
    fill(path, layout(), [1])
    with pytest.raises(StoreError, match="2 of 3 shards"):
        FeatureStore(path)
    (path / "features" / "c" / "0" / "0").mkdir(parents=True)
    (path / "features" / "c" / "0" / "0" / "0.1234.partial").write_bytes(b"cut")
    assert prepare(path, layout(), MADE, IDS, SIZES) == [0, 2]
    assert not list(path.rglob("*.partial"))


@pytest.mark.slow
def test_made_otherwise_is_refused_or_replaced(made: Path) -> None:
    sizes = FeatureStore(made).layout
    with pytest.raises(InputError, match="engine was test, is other; --if-changed redo replaces"):
        prepare(made, sizes, {**MADE, "engine": "other"}, IDS, SIZES)
    with pytest.raises(InputError, match=r"row\.dimension was 4, is 5; --if-changed redo"):
        prepare(made, replace(sizes, dimension=5), MADE, IDS, SIZES)
    assert FeatureStore(made).fingerprint == MADE
    assert prepare(made, sizes, {**MADE, "engine": "other"}, IDS, SIZES, if_changed="redo") == [
        0,
        1,
        2,
    ]


@pytest.mark.slow
def test_a_task_that_outlives_its_store_does_not_write_into_the_next(made: Path) -> None:
    sizes, shard = FeatureStore(made).layout, Shard.empty(layout(), 2)
    for row in shard.rows:
        shard.fail(row, "late")
    prepare(made, sizes, {**MADE, "engine": "other"}, IDS, SIZES, if_changed="redo")
    before = tree(made)
    with pytest.raises(StoreError, match="replaced by another store"):
        write_shard(made, sizes, shard, MADE_FROM)
    assert tree(made) == before


@pytest.mark.slow
def test_a_link_to_a_store_is_the_store(made: Path, tmp_path: Path) -> None:
    (tmp_path / "link.zarr").symlink_to(made)
    link = tmp_path / "link.zarr"
    with (
        exclusive(made),
        pytest.raises(InputError, match="another process is writing"),
        exclusive(link),
    ):
        pass
    prepare(tmp_path / "link.zarr", FeatureStore(made).layout, {}, IDS, SIZES, if_changed="redo")
    assert (tmp_path / "link.zarr").is_symlink()
    assert ledger.pending(made, layout()) == [0, 1, 2]


@pytest.mark.specification
def test_what_is_not_a_store_is_never_replaced(tmp_path: Path) -> None:
    photographs = tmp_path / "photographs"
    photographs.mkdir()
    (photographs / "a.jpg").write_bytes(b"precious")
    with pytest.raises(
        InputError, match=r"holds a\.jpg and no record\.json, and so is not features"
    ):
        prepare(photographs, layout(), MADE, IDS, SIZES, if_changed="redo")
    assert (photographs / "a.jpg").read_bytes() == b"precious"


def test_an_edited_fingerprint_is_refused(made: Path) -> None:
    record = json.loads((made / "record.json").read_text())
    record["request"]["engine"] = "better"
    (made / "record.json").write_text(json.dumps(record))
    with pytest.raises(StoreError, match="edited"):
        FeatureStore(made)


def test_an_edited_layout_is_refused(made: Path) -> None:
    tree = json.loads((made / "zarr.json").read_text())
    tree["attributes"]["layout"]["shard_rows"] = 8
    (made / "zarr.json").write_text(json.dumps(tree))
    with pytest.raises(StoreError, match=r"zarr\.json: changed after it was written"):
        FeatureStore(made)


def test_edited_metadata_of_an_array_is_found(made: Path) -> None:
    file = made / "features" / "zarr.json"
    file.write_text(file.read_text().replace('"/"', '"."'))
    assert differing(made) == ["features/zarr.json"]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        '{"shard": "0", "first": 0, "rows": 4, "failed": {}, "checksums": {}}',
        '{"shard": 0, "first": 0, "rows": 4, "failed": {"x": 1}, "checksums": {}}',
        '{"shard": 0, "first": 0, "rows": 4, "failed": {}, "checksums": {"features": 5}}',
    ],
)
def test_a_ledger_entry_of_anything_else_is_a_fault(made: Path, text: str) -> None:
    (made / "ledger" / "000000.json").write_text(text)
    assert "0: its ledger entry is not readable" in faults(made)


@pytest.mark.slow
def test_a_lost_ledger_is_begun_again(made: Path) -> None:
    whole, sizes = tree(made), FeatureStore(made).layout
    shutil.rmtree(made / "ledger")
    fill(made, sizes)
    assert tree(made) == whole


def test_not_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no feature store there"):
        FeatureStore(tmp_path / "nowhere")
    for text in ("{}", "not json", '{"attributes": {"layout": []}}'):
        (tmp_path / "zarr.json").write_text(text)
        with pytest.raises(StoreError, match="not a feature store"):
            FeatureStore(tmp_path)


def test_only_one_may_write(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    hold = (
        "import sys; from pathlib import Path; from pipeline.make.features.store import exclusive\n"
        "with exclusive(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", hold, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"held\n"
    with pytest.raises(InputError, match="another process is writing"), exclusive(path):
        pass
    other.kill()
    other.wait()
    with exclusive(path):
        pass


def differing(path: Path) -> list[str]:
    """The files and arrays that are not as the record says."""
    steps = verify.description(path, layout())
    return [str(step.path.relative_to(path)) for step in steps if step.verdict == DIFFERS]


def faults(path: Path) -> str:
    return "; ".join(f"{shard}: {fault}" for shard, found in verify.verify(path) for fault in found)


def test_verify_finds_nothing_in_a_good_store(made: Path) -> None:
    assert faults(made) == ""


@pytest.mark.specification
@pytest.mark.parametrize(
    ("array", "shard", "said"),
    [
        ("features", 1, "1: features: its bytes have changed since they were written"),
        ("boxes", 2, "2: boxes: its bytes have changed"),
        ("counts", 0, "0: counts: its bytes have changed"),
    ],
)
def test_verify_finds_a_flipped_bit(made: Path, array: str, shard: int, said: str) -> None:
    file = ledger.shard_file(made, array, shard, 1 + len(layout().arrays()[array][0]))
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)
    assert said in faults(made)


def test_verify_finds_what_is_missing(made: Path) -> None:
    shutil.rmtree(made / "features" / "c" / "1")
    ledger.erase(made, 2)
    (made / "ledger" / "000000.json").write_text("{")
    found = faults(made)
    assert "0: its ledger entry is not readable" in found
    assert "1: features: its file is missing" in found
    assert "2: not extracted yet" in found


def test_verify_finds_other_ids(made: Path) -> None:
    zarr.open_group(made, mode="r+")["ids"][3] = 7  # type: ignore[index]
    assert differing(made) == ["ids"]


@pytest.mark.slow
def test_identity_is_what_was_made_and_which_images_failed(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.zarr", "b.zarr", "c.zarr")]
    for path in paths:
        fill(path, layout())
    shard = Shard.empty(layout(), 2)
    for row in shard.rows:
        shard.fail(row, "gone")
    write_shard(paths[1], layout(), shard, MADE_FROM)
    shutil.rmtree(paths[2])
    prepare(paths[2], layout(), {**MADE, "weights": "others"}, IDS, SIZES)
    fill(paths[2], layout(), [0, 1, 2], digest({**MADE, "weights": "others"}))
    first, failed, other = (FeatureStore(path).identity for path in paths)
    assert len({first, failed, other}) == 3
    fill(tmp_path / "again.zarr", layout("zstd"))
    assert FeatureStore(tmp_path / "again.zarr").identity == first
    rows = np.arange(11)
    rows[8] = ABSENT  # of an image that is not extracted yet
    assert FeatureStore(paths[0], rows).identity == first


@pytest.mark.slow
def test_content_is_what_was_made_of_each_row_and_why_it_failed(tmp_path: Path) -> None:
    contents = []
    for name, reason in (("a", "not an image"), ("b", "not an image"), ("c", "cut short")):
        path = tmp_path / name
        fill(path, layout())
        entry = ledger.read(path, 1)
        assert entry is not None
        ledger.write(path, replace(entry, failed={5: reason}))
        contents.append(FeatureStore(path).content(np.array([2, 5, 6])))
    assert contents[0] == contents[1] != contents[2]


def test_content_is_of_the_rows_in_the_order_of_which_it_is_asked(made: Path) -> None:
    rows = [9, 0, 5, 10, 2, 4]
    expected = []
    for row in rows:
        entry = ledger.read(made, row // 4)
        assert entry is not None
        of_row = {**entry.values, **entry.failed}[row]
        expected.append([int(IDS[row]), of_row, entry.sources.get(row)])
    written = json.dumps([layout().dtype, expected], ensure_ascii=False).encode()
    assert verify.content(made, np.array(rows)) == hashlib.sha256(written).hexdigest()


def test_float32_is_kept_as_it_is(tmp_path: Path) -> None:
    sizes = StoreLayout(11, 2, 4, shard_rows=11, dtype="float32")
    prepare(tmp_path / "s.zarr", sizes, MADE, IDS, SIZES)
    values = np.random.default_rng(0).standard_normal((11, 2, 4), dtype=np.float32) * 1e6
    shard = Shard.empty(sizes, 0)
    for row in shard.rows:
        shard.fill(row, values[row], (1, 1), {}, int(SIZES[row]))
    write_shard(tmp_path / "s.zarr", sizes, shard, MADE_FROM)
    read, _ = FeatureStore(tmp_path / "s.zarr").read(np.arange(11))
    assert read.dtype == np.float32
    assert np.array_equal(read, values)
    assert faults(tmp_path / "s.zarr") == ""


@pytest.mark.slow
def test_verify_finds_values_that_the_ledger_vouches_for_wrongly(made: Path) -> None:
    """Checksums that agree are not enough: the values themselves are looked at."""
    group = zarr.open_group(made, mode="r+")
    group["features"][6] = np.full((3, 4), np.inf, np.float16)  # type: ignore[index]
    group["features"][9] = np.full((3, 4), np.nan, np.float16)  # type: ignore[index]  # zarr leaves it out
    group["counts"][2] = 9  # type: ignore[index]
    group["counts"][7] = 0  # type: ignore[index]
    for shard in (0, 1, 2):
        entry = ledger.read(made, shard)
        assert entry is not None
        sums = {
            name: blake.of_file(ledger.shard_file(made, name, shard, len(shape) + 1))
            for name, (shape, _) in FeatureStore(made).layout.arrays().items()
        }
        ledger.write(made, replace(entry, checksums=sums))
    assert "features: row 6 has values that are not finite" in faults(made)
    assert "0: counts: expected 1 to 3 items" in faults(made)
    assert "1: counts: expected 1 to 3 items" in faults(made)
    assert "2: features: its file lacks rows" in faults(made)


def test_a_chunk_that_its_index_does_not_have_is_damage(made: Path) -> None:
    put_chunk(ledger.shard_file(made, "features", 1, 3), 4, None)
    store = FeatureStore(made)
    with pytest.raises(StoreError, match="features is damaged"):
        store.read(np.array([4]))


def test_a_torn_file_is_seen_when_read(made: Path) -> None:
    file = made / "features" / "c" / "0" / "0" / "0"
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(StoreError, match=r"damaged|cut short"):
        FeatureStore(made).read(np.array([1, 2]))


@pytest.mark.parametrize(
    "short",
    [
        MemoryError(),
        RuntimeError("Zstd decompression error: b'Allocation error : not enough memory'"),
    ],
    ids=["of Python", "of zstd"],
)
def test_too_little_memory_is_no_damage(
    short: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is damaged would be made again."""
    fill(tmp_path / "s.zarr", layout("zstd"))
    before, store = tree(tmp_path / "s.zarr"), FeatureStore(tmp_path / "s.zarr")

    def decode(*arguments: Any) -> None:
        raise short

    monkeypatch.setattr(shard_file, "ZSTD", SimpleNamespace(decode=decode))
    for read in (lambda: store.read(np.array([0])), lambda: faults(store.path)):
        with pytest.raises(type(short)):
            read()
    assert tree(tmp_path / "s.zarr") == before


@pytest.mark.parametrize(
    "changed",
    [
        {"total": "4"},
        {"total": -1},
        {"total": None},
        {"total": 10**12},
        {"items": 10**12},
        {"dimension": 10**12},
        {"shard_rows": 10**12},
        {"items": 0},
        {"shard_rows": 0},
        {"shard_rows": 1.5},
        {"compressor": "lz4"},
        {"dtype": "object"},
        {"sizes": [1, "a"]},
        {"sizes": [3, 3]},
        {"sizes": [-1, 2]},
        {"extras": {"../boxes": {"shape": [4], "dtype": "float32"}}},
        {"extras": {"boxes": {"shape": [4], "dtype": "O"}}},
        {"extras": {"boxes": {"shape": [-1], "dtype": "float32"}}},
        {"extras": {"features": {"shape": [], "dtype": "f4"}}},
    ],
)
def test_a_description_that_no_store_has_is_refused(
    changed: dict[str, Any], tmp_path: Path
) -> None:
    """Also with a digest that is right: a store may come from anywhere."""
    prepare(
        tmp_path / "s.zarr",
        layouts.StoreLayout(4, 2, 3, 2),
        {"ids": "x"},
        np.arange(4),
        np.zeros(4),
    )
    file = tmp_path / "s.zarr" / "zarr.json"
    tree = json.loads(file.read_text())
    found = tree["attributes"]
    found["layout"] |= changed
    file.write_text(json.dumps(tree))
    forged.recorded(file.parent)
    with pytest.raises(StoreError, match="not a feature store of this pipeline"):
        FeatureStore(tmp_path / "s.zarr")


@pytest.mark.parametrize(
    "chunk",
    [
        b"\x28\xb5\x2f\xfd\xe0" + (1 << 44).to_bytes(8, "little") + b"\x01\x00\x00",
        Zstd().encode(bytes(2)),
        None,
    ],
    ids=["of 16 TB", "of one number", "missing"],
)
def test_damaged_chunks_are_noticed(tmp_path: Path, chunk: bytes | None) -> None:
    store = tmp_path / "s.zarr"
    fill(store, layout("zstd"))
    put_chunk(ledger.shard_file(store, "features", 0, 3), 4, chunk)
    with pytest.raises(StoreError, match="damaged"):
        FeatureStore(store).read(np.array([0]))


def test_a_chunk_of_whole_numbers_that_holds_less_is_noticed(tmp_path: Path) -> None:
    """-1 has the bytes that nothing else has been written to."""
    sizes = StoreLayout(2, 3, 4, 2, "zstd", {"labels": Extra((), "int16")})
    shards = prepare(tmp_path / "s.zarr", sizes, {}, np.arange(2), np.arange(2))
    shard = Shard.empty(sizes, shards[0])
    for row in shard.rows:
        shard.fill(row, np.ones((3, 4), np.float16), (1, 1), {"labels": np.full(3, -1)})
    write_shard(tmp_path / "s.zarr", sizes, shard, digest({}))
    file, found = ledger.shard_file(tmp_path / "s.zarr", "labels", 0, 2), []
    for chunk in (None, Zstd().encode(bytes(4))):
        if chunk:
            put_chunk(file, 2, chunk)
        try:
            found.append(
                FeatureStore(tmp_path / "s.zarr").extra("labels", np.array([0]))[0].tolist()
            )
        except StoreError as error:
            found.append("damaged" in str(error))
    assert found == [[-1] * 3, True]
    assert "labels" not in shard_file.read(tmp_path / "s.zarr", sizes, 0).arrays

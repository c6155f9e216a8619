"""Files that appear whole or not at all, with the mode that the umask gives."""

from __future__ import annotations

import errno
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from full_disk import no_file_larger_than

from pipeline.foundation.files import atomic
from pipeline.foundation.files.atomic import creating, exclusive
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.store import shard_file
from pipeline.make.training import checkpoint

LIMIT = 1 << 16


def large_text(path: Path) -> None:
    atomic.write_text(path, "x" * 2 * LIMIT)


def large_checkpoint(path: Path) -> None:
    checkpoint.save_tensors(path, {"weight": torch.zeros(LIMIT)}, {})


def large_shard(path: Path) -> None:
    shard_file.write(path, np.zeros((2, LIMIT), np.float16), 2, "none")


WRITERS = [large_text, large_checkpoint, large_shard]


@pytest.mark.specification
@pytest.mark.parametrize("write", WRITERS)
def test_on_a_full_disk_the_earlier_file_stays_and_the_error_names_it(
    write: object, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_text("earlier")
    with no_file_larger_than(LIMIT), pytest.raises(OSError, match="File too large") as raised:
        write(path)  # type: ignore[operator]
    assert (raised.value.errno, raised.value.filename) == (errno.EFBIG, str(path))
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "earlier"


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o002, 0o664)])
def test_the_umask_says_who_may_read(write: object, umask: int, mode: int, tmp_path: Path) -> None:
    leftover = tmp_path / "file.partial"
    leftover.touch(0o600)
    before = os.umask(umask)
    try:
        write(tmp_path / "file")  # type: ignore[operator]
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
    assert not leftover.exists()


@pytest.mark.specification
def test_what_is_interrupted_leaves_the_earlier_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"

    def interrupted() -> None:
        with atomic.replacing(path) as partial:
            partial.write_text("half")
            raise KeyboardInterrupt

    atomic.write_text(path, "earlier")
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [file.name for file in path.parent.iterdir()] == ["file"]
    assert path.read_text() == "earlier"


def test_the_bytes_are_on_disk_before_the_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(atomic, "sync", lambda path: done.append(f"sync {path.name}"))
    monkeypatch.setattr(Path, "replace", lambda path, to: done.append(f"rename to {to.name}"))
    atomic.write_text(tmp_path / "file", "text")
    assert done == ["sync file.partial", "rename to file", f"sync {tmp_path.name}"]
    done.clear()
    atomic.write_text(tmp_path / "file", "text", durable=False)
    assert done == ["rename to file"]


def test_bytes_and_names_are_forced_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    forced: list[os.stat_result] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: forced.append(os.fstat(descriptor)))
    for path in (tmp_path / "file", tmp_path):
        atomic.sync(path)
        assert os.path.samestat(forced.pop(), path.stat())


def test_a_folder_appears_whole_and_replaces_the_earlier_one(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "store"
    for text in ("first", "second"):
        with creating(folder) as making:
            assert list(making.iterdir()) == []
            (making / text).write_text(text)
            assert [file.name for file in folder.glob("*")] == (
                [] if text == "first" else ["first"]
            )
        assert [file.name for file in folder.iterdir()] == [text]
    assert [entry.name for entry in folder.parent.iterdir()] == ["store"]


def test_a_folder_stays_where_its_successor_fails(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with creating(folder) as making:
        (making / "kept").touch()

    def fail() -> None:
        with creating(folder) as making:
            (making / "half").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [entry.relative_to(tmp_path).as_posix() for entry in sorted(tmp_path.rglob("*"))] == [
        "store",
        "store/kept",
    ]


def test_what_a_killed_process_left_of_a_folder_is_removed(tmp_path: Path) -> None:
    for left in ("store.creating", "store.removing"):
        (tmp_path / left).mkdir()
        (tmp_path / left / "old").touch()
    with creating(tmp_path / "store") as making:
        (making / "new").touch()
    assert sorted(entry.relative_to(tmp_path).as_posix() for entry in tmp_path.rglob("*")) == [
        "store",
        "store/new",
    ]


def test_a_folder_is_not_replaced_by_a_file_nor_a_file_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("kept")
    with pytest.raises(IsADirectoryError, match=r"folder'$"):
        atomic.write_text(tmp_path / "folder", "text")
    with pytest.raises(NotADirectoryError, match=r"file'$"), creating(tmp_path / "file"):
        pytest.fail("nothing is written")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize("writing", [creating, exclusive])
def test_on_a_full_disk_what_a_library_writes_is_named(writing: Any, tmp_path: Path) -> None:
    with (
        no_file_larger_than(LIMIT),
        pytest.raises(OSError, match="File too large") as raised,
        writing(tmp_path / "store"),
    ):
        (tmp_path / "inside").write_bytes(bytes(2 * LIMIT))
    assert raised.value.filename == str(tmp_path / "store")


def test_writers_of_one_file_take_turns_and_each_writes_it_whole(tmp_path: Path) -> None:
    path, begun = tmp_path / "file", threading.Event()

    def second() -> None:
        begun.set()
        atomic.write_text(path, "second")

    other = threading.Thread(target=second)
    with atomic.replacing(path) as partial:
        partial.write_text("fir")
        other.start()
        begun.wait()
        other.join(0.05)
        assert other.is_alive()
        assert partial.read_text() == "fir"
        partial.write_text("first")
    other.join()
    assert path.read_text() == "second"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_folder_is_written_by_one_at_a_time(tmp_path: Path) -> None:
    said: list[str] = []

    def second() -> None:
        try:
            with creating(tmp_path / "folder"):
                pass
        except InputError as error:
            said.append(str(error))

    with creating(tmp_path / "folder") as making:
        (making / "mine").touch()
        other = threading.Thread(target=second)
        other.start()
        other.join()
    assert said == [f"{tmp_path / 'folder'}: another process is writing to it; wait for it to end"]
    assert [file.name for file in (tmp_path / "folder").iterdir()] == ["mine"]


def test_who_holds_a_folder_may_create_it_anew(tmp_path: Path) -> None:
    with exclusive(tmp_path / "folder"):
        with creating(tmp_path / "folder"):
            pass
        with pytest.raises(InputError, match="another process"), ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: exclusive(tmp_path / "folder").__enter__()).result()
    with exclusive(tmp_path / "folder"):
        pass

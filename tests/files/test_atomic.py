"""Files that appear whole or not at all, with the mode that the umask gives."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import numpy as np
import pytest
import torch
from full_disk import no_file_larger_than

from pipeline.files import atomic
from pipeline.store import shard_file
from pipeline.training import checkpoint

LIMIT = 1 << 16


def large_text(path: Path) -> None:
    atomic.write_text(path, "x" * 2 * LIMIT)


def large_checkpoint(path: Path) -> None:
    checkpoint.save_tensors(path, {"weight": torch.zeros(LIMIT)}, {})


def large_shard(path: Path) -> None:
    shard_file.write(path, np.zeros((2, LIMIT), np.float16), 2, "none")


WRITERS = [large_text, large_checkpoint, large_shard]


@pytest.mark.parametrize("write", WRITERS)
def test_on_a_full_disk_the_earlier_file_stays_and_the_error_names_it(write: object, tmp_path: Path) -> None:
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


def test_the_bytes_are_on_disk_before_the_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(atomic, "sync", lambda path: done.append(f"sync {path.name}"))
    monkeypatch.setattr(Path, "replace", lambda path, to: done.append(f"rename to {to.name}"))
    atomic.write_text(tmp_path / "file", "text")
    assert done == ["sync file.partial", "rename to file", f"sync {tmp_path.name}"]
    done.clear()
    atomic.write_text(tmp_path / "file", "text", durable=False)
    assert done == ["rename to file"]

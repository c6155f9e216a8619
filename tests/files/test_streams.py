"""What is no regular file is written to or refused, and never replaced."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
import threading
import tty
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.foundation.files import atomic, results, streams
from pipeline.foundation.parts.errors import InputError

TEXT = "a result\n"


def file_behind_a_link(folder: Path) -> Path:
    (folder / "target").write_text("earlier")
    (folder / "place").symlink_to("target")
    return folder / "target"


def file_behind_two_links(folder: Path) -> Path:
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "target").write_text("earlier")
    (folder / "elsewhere" / "second").symlink_to("target")
    (folder / "place").symlink_to("elsewhere/second")
    return folder / "elsewhere" / "target"


def missing_file_behind_a_link(folder: Path) -> Path:
    (folder / "place").symlink_to(folder / "target")
    return folder / "target"


@pytest.mark.specification
@pytest.mark.parametrize(
    "make", [file_behind_a_link, file_behind_two_links, missing_file_behind_a_link]
)
def test_a_link_stays_and_its_target_is_written(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    target, place = make(tmp_path), tmp_path / "place"
    led_to = os.readlink(place)
    atomic.write_text(place, TEXT)
    assert os.readlink(place) == led_to
    assert not target.is_symlink()
    assert target.read_text() == TEXT
    assert not list(tmp_path.rglob("*.partial"))


def test_a_pipe_receives_the_bytes(tmp_path: Path) -> None:
    pipe, received = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()), daemon=True)
    reader.start()
    atomic.write_text(pipe, TEXT)
    reader.join(5)
    assert received == [TEXT]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_a_device_receives_the_bytes(tmp_path: Path) -> None:
    ours, theirs = os.openpty()  # a terminal
    tty.setraw(theirs)
    os.set_blocking(ours, False)
    (tmp_path / "device").symlink_to(os.ttyname(theirs))
    atomic.write_text(tmp_path / "device", TEXT)
    assert os.read(ours, 100).decode() == TEXT
    assert stat.S_ISCHR((tmp_path / "device").stat().st_mode)
    os.close(ours)
    os.close(theirs)


def test_standard_output_is_written_to_where_it_has_got_to(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from pipeline.foundation.files import atomic;"
        "print('before', flush=True); atomic.write_text(Path('/dev/stdout'), 'between\\n');"
        "print('after')"
    )
    with (tmp_path / "out").open("w") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert (tmp_path / "out").read_text() == "before\nbetween\nafter\n"


def pipe_without_reader(place: Path) -> None:
    os.mkfifo(place)


def bound_socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as each:
        each.bind(os.path.relpath(place))


def link_to_a_read_only_file(place: Path) -> None:
    target = place.with_name("target")
    target.write_text("of a cache")
    target.chmod(0o444)
    place.symlink_to(target)


def read_only_file(place: Path) -> None:
    place.write_text("protected")
    place.chmod(0o444)


def link_into_a_missing_folder(place: Path) -> None:
    place.symlink_to("annex/objects/key")


REFUSALS = {
    "nobody reads this pipe": pipe_without_reader,
    "is a socket": bound_socket,
    "which is read-only": link_to_a_read_only_file,
    "place: is read-only; make it writable": read_only_file,
    "whose folder is missing": link_into_a_missing_folder,
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_what_cannot_be_written_to_is_refused_and_stays(
    refusal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "SECONDS", 0.0)
    place = tmp_path / "place"
    REFUSALS[refusal](place)
    before = place.lstat().st_ino, sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=refusal):
        atomic.write_text(place, TEXT)
    assert (place.lstat().st_ino, sorted(tmp_path.iterdir())) == before


@pytest.mark.parametrize("writing", [atomic.replacing, atomic.creating, atomic.exclusive])
def test_nothing_is_made_below_a_file(writing: Callable[[Path], Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    with (
        pytest.raises(InputError, match=r"file is a file, and no folder can be made there"),
        writing(tmp_path / "file" / "folder" / "place"),
    ):
        pytest.fail("nothing is written")
    assert (tmp_path / "file").read_text() == "kept"


def test_who_may_read_a_file_stays_when_it_is_replaced(tmp_path: Path) -> None:
    for mode in (0o600, 0o640, 0o755):
        (tmp_path / "place").touch()
        (tmp_path / "place").chmod(mode)
        atomic.write_text(tmp_path / "place", TEXT)
        assert stat.S_IMODE((tmp_path / "place").stat().st_mode) == mode


def test_a_place_that_this_user_may_not_write_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(partial: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(partial))

    monkeypatch.setattr(atomic.locks, "in_turn", refuse)
    with pytest.raises(PermissionError) as raised:
        atomic.write_text(tmp_path / "place", TEXT)
    assert raised.value.filename == os.fspath(tmp_path / "place")


def test_a_disk_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "stat", lambda place: SimpleNamespace(st_mode=stat.S_IFBLK))
    with pytest.raises(InputError, match="is a disk"):
        streams.refuse_occupied(tmp_path / "sda")


def test_a_reader_that_ends_early_is_named(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def read_a_byte() -> None:
        with pipe.open("rb", buffering=0) as stream:
            stream.read(1)

    reader = threading.Thread(target=read_a_byte, daemon=True)
    reader.start()
    with pytest.raises(InputError, match="its reader has ended"):
        atomic.write_bytes(pipe, bytes(1 << 20))  # more than a pipe holds
    reader.join(5)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_a_link_to_a_folder_stays_and_its_folder_is_replaced(tmp_path: Path) -> None:
    large = tmp_path / "large" / "disk"
    large.mkdir(parents=True)
    (large / "old").touch()
    (tmp_path / "store").symlink_to(large)
    with atomic.creating(tmp_path / "store") as making:
        (making / "new").touch()
    assert (tmp_path / "store").is_symlink()
    assert [file.name for file in large.iterdir()] == ["new"]
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["disk", "large", "new", "store"]


def test_folders_and_links_beside_results_stay(tmp_path: Path) -> None:
    folder, paper = tmp_path / "figures", tmp_path / "paper"
    (folder / "mine").mkdir(parents=True)
    (folder / "mine" / "notes").write_text("kept")
    paper.mkdir()
    (paper / "first.pdf").write_text("earlier")
    (folder / "first.pdf").symlink_to("../paper/first.pdf")
    (folder / "of-mine").symlink_to("mine/notes")
    with results.updating(folder, ["first"]) as making:
        (making / "first.pdf").write_text(TEXT)
    assert (folder / "mine" / "notes").read_text() == "kept"
    assert (paper / "first.pdf").read_text() == TEXT
    assert os.readlink(folder / "first.pdf") == "../paper/first.pdf"
    assert os.readlink(folder / "of-mine") == "mine/notes"


def test_a_pipe_among_results_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "first.pdf")
    with (
        pytest.raises(InputError, match="no regular file"),
        results.updating(tmp_path, ["first"]),
    ):
        pytest.fail("nothing is written")


def test_a_lock_is_no_way_to_another_file(tmp_path: Path) -> None:
    (tmp_path / "valued").write_text("kept")
    (tmp_path / ".store.lock").symlink_to("valued")
    with (
        pytest.raises(OSError, match="Too many levels"),
        atomic.exclusive(tmp_path / "store"),
    ):
        pytest.fail("it is not held")
    assert (tmp_path / "valued").read_text() == "kept"

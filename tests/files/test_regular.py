"""A pipe in the place of a file is refused, and not waited for."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.foundation.artefacts import Artefact
from pipeline.foundation.artefacts.record import FILE
from pipeline.foundation.files import blake, digest, images, parsing, regular, results
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.store import StoreError, read_header
from pipeline.make.training import checkpoint

READERS: dict[str, tuple[Callable[[Path], object], type[Exception]]] = {
    "results": (lambda pipe: results.read_json(pipe, "evaluate"), InputError),
    "digest": (digest.sha256, OSError),
    "photograph": (images.decode, images.ImageError),
    "checkpoint": (lambda pipe: checkpoint.state(pipe.parent), InputError),
    "header": (lambda pipe: read_header(pipe.parent), StoreError),
}
NAMES = {"checkpoint": "last.safetensors", "header": "zarr.json"}


@pytest.mark.specification
@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_is_refused(reader: str, tmp_path: Path) -> None:
    pipe = tmp_path / NAMES.get(reader, "a-file")
    os.mkfifo(pipe)
    read, refusal = READERS[reader]
    with pytest.raises(refusal):
        read(pipe)


def test_a_pipe_counts_as_damaged_where_damage_is_no_error(tmp_path: Path) -> None:
    for name in ("a.json", FILE):
        os.mkfifo(tmp_path / name)
    assert parsing.json_object(tmp_path / "a.json") is None
    assert Artefact.existing(tmp_path) is None
    assert blake.of_file(tmp_path / "a.json") == blake.of_bytes(b"")


def test_files_are_read_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("ü", encoding="utf-8")
    assert regular.text(tmp_path / "a") == "ü"
    with pytest.raises(FileNotFoundError):
        regular.text(tmp_path / "b")
    with pytest.raises(OSError, match="no regular file"):
        regular.require(tmp_path)


def test_what_has_no_end_or_no_terminal_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/proc/kmsg is called a regular file and waits; /dev/tty may lead nowhere."""
    (tmp_path / "a").touch()
    assert regular.content(tmp_path / "a") == b""

    def waiting(*_: int) -> bytes:
        raise BlockingIOError(errno.EAGAIN, "nothing yet")

    monkeypatch.setattr(os, "read", waiting)
    with pytest.raises(regular.NoRegularFile, match="is no regular file"):
        regular.content(tmp_path / "a")
    monkeypatch.undo()

    def nowhere(path: str, flags: int) -> int:
        raise OSError(errno.ENXIO, "No such device or address", path)

    monkeypatch.setattr(os, "open", nowhere)
    with pytest.raises(regular.NoRegularFile, match="is no regular file"):
        regular.content(Path("/dev/tty"))

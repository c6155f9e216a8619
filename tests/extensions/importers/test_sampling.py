"""What a fingerprint sees of a source, and how little it reads for that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.extensions.importers import base
from pipeline.extensions.importers.base import sampled

pytestmark = pytest.mark.slow


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    for name, content in (("a", b"1" * 10_000), ("b", b""), ("c", b"3" * 70_001)):
        (tmp_path / name).write_bytes(content)
    return sorted(tmp_path.iterdir())


def test_names_sizes_and_every_byte_of_small_files(files: list[Path]) -> None:
    first = sampled(files)
    assert (first["files"], first["bytes"]) == ("a, b, c", 80_001)
    assert sampled(files[::-1]) == first
    for place in (0, 5_000, 70_000):
        content = bytearray(b"3" * 70_001)
        content[place] = 0
        files[2].write_bytes(content)
        assert sampled(files)["sampled_sha256"] != first["sampled_sha256"]
    files[2].write_bytes(b"3" * 70_001)
    assert sampled(files) == first
    files[1].write_bytes(b"x")
    assert sampled(files) != first
    files[1].write_bytes(b"")
    assert sampled([files[0], files[2], files[1].rename(files[1].with_name("d"))]) != first
    files[1].with_name("d").rename(files[1])
    renamed = sampled([*files[:2], files[2].rename(files[2].with_name("d"))])
    assert renamed["sampled_sha256"] != first["sampled_sha256"]


def test_large_sources_are_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 MB in four files and 20 small files: so many blocks, from end to end of each."""
    read: list[int] = []
    pread = os.pread

    def spy(descriptor: int, count: int, start: int) -> bytes:
        read.append(start)
        return pread(descriptor, count, start)

    monkeypatch.setattr(base, "BLOCKS", 40)
    monkeypatch.setattr(os, "pread", spy)
    for name in range(4):
        with (tmp_path / f"{name}.tsv").open("wb") as file:
            file.truncate(1 << 24)
    sampled(sorted(tmp_path.iterdir()))
    assert len(read) == 40
    assert (min(read), max(read)) == (0, (1 << 24) - base.BLOCK)
    read.clear()
    monkeypatch.setattr(base, "BLOCKS", 3)
    assert sampled(sorted(tmp_path.iterdir()) * 5)["files"] == "20 files, 0.tsv to 3.tsv"
    assert len(read) == 20

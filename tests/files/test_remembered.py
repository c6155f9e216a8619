"""Digests are computed once while a file stays as it is, and again after any change."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import Mock

import pytest

from pipeline.foundation.files import remembered
from pipeline.foundation.files.digest import sha256
from pipeline.foundation.files.remembered import Remembered


class Counting:
    """Digests of a file, and how often one was computed."""

    def __init__(self, file: Path, cache: Path) -> None:
        self.file, self.cache, self.computed = file, cache, 0

    def __call__(self) -> str:
        return Remembered(self.cache).of(self.file)("sha256", self._compute)

    def _compute(self) -> str:
        self.computed += 1
        return sha256(self.file)


@pytest.fixture
def digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counting:
    monkeypatch.setattr(remembered, "SETTLED", -(10**12))  # as if the file were old
    (tmp_path / "file").write_bytes(b"one")
    return Counting(tmp_path / "file", tmp_path / "digests.json")


def test_a_digest_is_computed_once(digest: Counting) -> None:
    assert digest() == digest() == sha256(digest.file)
    assert digest.computed == 1


def test_a_file_that_is_replaced_before_it_is_read_has_its_own_digest(digest: Counting) -> None:
    before, ask = digest(), Remembered(digest.cache).of(digest.file)
    other = digest.file.with_name("other")
    other.write_bytes(b"two")
    other.replace(digest.file)
    assert ask("sha256", lambda: sha256(digest.file)) == sha256(digest.file) != before


@pytest.mark.parametrize("times_kept", [False, True])
def test_a_byte_that_changes_is_seen_even_where_its_time_is_set_back(
    digest: Counting, times_kept: bool
) -> None:
    before, at = digest(), digest.file.stat()
    digest.file.write_bytes(b"two")
    if times_kept:
        os.utime(digest.file, ns=(at.st_atime_ns, at.st_mtime_ns))
    assert digest() == sha256(digest.file) != before
    assert digest.computed == 2


def test_another_file_in_its_place_is_seen(digest: Counting) -> None:
    digest()
    other = digest.file.with_name("other")
    other.write_bytes(b"two")
    other.replace(digest.file)
    assert digest() == sha256(digest.file)


@pytest.mark.parametrize("other", ["st_size", "st_ino", "st_mtime_ns", "st_ctime_ns"])
def test_each_part_of_a_files_state_tells(
    tmp_path: Path, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone, as on a file system whose clock stood still."""
    found = tmp_path.stat()
    parts = {
        name: getattr(found, name) for name in ("st_size", "st_ino", "st_mtime_ns", "st_ctime_ns")
    }
    monkeypatch.setattr(os, "stat", lambda value: Mock(**{**parts, other: int(value)}))
    assert remembered.state_of("1") != remembered.state_of("2")


def test_a_file_that_changed_just_now_is_not_remembered(
    digest: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "SETTLED", 10**12)
    digest()
    digest()
    assert digest.computed == 2
    assert not digest.cache.exists()


def test_a_file_that_changes_while_it_is_digested_is_not_remembered(digest: Counting) -> None:
    compute = digest._compute

    def slow() -> str:
        found = compute()
        digest.file.write_bytes(b"another")  # of another size: clocks may be coarse
        return found

    digest._compute = slow  # type: ignore[method-assign]
    digest()
    assert not digest.cache.exists()
    digest._compute = compute  # type: ignore[method-assign]
    assert digest() == sha256(digest.file)
    assert digest.computed == 2


@pytest.mark.parametrize(
    "held", ["", "[]", "{", '{"x": 1}', '{"FILE": 7}', '{"FILE": {"sha256": "forged"}}']
)
def test_a_damaged_memory_is_no_memory(digest: Counting, held: str) -> None:
    digest.cache.write_text(held.replace("FILE", str(digest.file.resolve())))
    assert digest() == digest() == sha256(digest.file)
    assert digest.computed == 1


def test_where_nothing_can_be_kept_digests_are_computed(digest: Counting) -> None:
    digest.cache = digest.file / "digests.json"
    assert digest() == digest() == sha256(digest.file)
    assert digest.computed == 2


def test_the_states_of_a_folders_files_are_those_of_all_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "SETTLED", -(10**12))
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "above").symlink_to(tmp_path / "a")  # leads in a circle
    file = tmp_path / "a" / "b" / "file"
    file.write_text("one")
    before = remembered.states_of([tmp_path / "a"])
    assert before is not None
    assert remembered.states_of([tmp_path / "a"]) == before
    file.write_text("two")
    assert remembered.states_of([tmp_path / "a"]) != before
    assert remembered.states_of([tmp_path / "nowhere"]) is None
    monkeypatch.setattr(remembered, "SETTLED", 10**12)
    assert remembered.states_of([tmp_path / "a"]) is None

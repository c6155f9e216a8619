"""What is kept between runs is made once, of today's code, and spoiled by nobody."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import kept
import pytest


def ask(folder: Path, name: str) -> None:
    def make(new: Path) -> None:
        with (folder / "made").open("a", encoding="utf-8") as counted:
            counted.write("once\n")
        time.sleep(0.1)  # long enough for the other to ask meanwhile
        (new / "file").write_text("content", encoding="utf-8")

    kept.copy_of(folder / "kept", lambda: "key", make, folder / name)


def test_two_processes_that_ask_at_once_make_it_once(tmp_path: Path) -> None:
    names = ("a", "b")
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=ask, args=(tmp_path, name)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert (tmp_path / "made").read_text(encoding="utf-8") == "once\n"
    for name in names:
        assert (tmp_path / name / "file").read_text(encoding="utf-8") == "content"


class Asked:
    """Asks for a folder of one file, which says how often it was made."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.key, self.made, self.copies = folder, "old", 0, 0

    def make(self, folder: Path) -> None:
        self.made += 1
        (folder / "file").write_text(str(self.made), encoding="utf-8")

    def copy(self) -> Path:
        self.copies += 1
        copy = self.folder / f"copy {self.copies}"
        return kept.copy_of(self.folder / "kept", lambda: self.key, self.make, copy) / "file"


def test_a_copy_that_is_spoiled_spoils_no_other(tmp_path: Path) -> None:
    asked = Asked(tmp_path)
    for _ in range(3):
        file = asked.copy()
        assert file.read_text(encoding="utf-8") == "1"
        file.write_text("spoiled", encoding="utf-8")


def test_another_key_makes_it_again_and_forgets_the_other(tmp_path: Path) -> None:
    asked = Asked(tmp_path)
    for key, made in (("old", "1"), ("new", "2"), ("new", "2"), ("old", "3")):
        asked.key = key
        assert asked.copy().read_text(encoding="utf-8") == made, key
        assert {path.name for path in (tmp_path / "kept").iterdir()} == {"lock", key}


def test_what_is_edited_while_it_is_made_is_used_but_not_kept(tmp_path: Path) -> None:
    class Edited(Asked):
        def make(self, folder: Path) -> None:
            super().make(folder)
            self.key = "new"

    edited = Edited(tmp_path)
    for made in ("1", "2"):
        edited.key = "old"
        assert edited.copy().read_text(encoding="utf-8") == made
        assert [path.name for path in (tmp_path / "kept").iterdir()] == ["lock"]


def test_what_cannot_be_made_is_made_the_next_time(tmp_path: Path) -> None:
    asked = Asked(tmp_path)

    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        kept.copy_of(tmp_path / "kept", lambda: "old", fail, tmp_path / "copy")
    file = asked.copy()
    assert [path.name for path in file.parent.iterdir()] == ["file"]


def test_the_key_follows_code_settings_the_module_and_the_simulated_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "ROOT", tmp_path)
    files = (
        "pipeline/a.py",
        "pipeline/data/facts.yaml",
        "stages/a.py",
        "manifests/a.json",
        "params.yaml",
        "dvc.yaml",
        "constraints.txt",
        "tests/shared.py",
        "tests/stages/test_own.py",
    )
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    module = tmp_path / "tests" / "stages" / "test_own.py"
    keys = {kept.key(module)}
    for number, name in enumerate(files, start=1):
        (tmp_path / name).write_text("changed", encoding="utf-8")
        keys.add(kept.key(module))
        assert len(keys) == number + 1, name
    (tmp_path / "pipeline" / "a.py").rename(tmp_path / "pipeline" / "b.py")
    keys.add(kept.key(module))
    assert len(keys) == len(files) + 2
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert kept.key(module) not in keys
    keys.add(kept.key(module))
    monkeypatch.setattr(kept, "_AT_START", "imported before an edit")
    assert kept.key(module) not in keys

"""The CPU is measured once a machine, whichever process asks first; no other test measures it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import given_cpus
import pytest

from pipeline.foundation.compute import half, machine, measured
from pipeline.foundation.parts.errors import InputWarning


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(measured.FOLDER, str(tmp_path / "cache"))
    return tmp_path / "cache" / "cpu.json"


@pytest.fixture
def in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """What a process finds that has not asked before; each measurement gives another number."""
    numbers: Iterator[float] = iter([1.16, 1.21, 1.3])

    def ask() -> float:
        monkeypatch.setattr(measured, "_known", {})
        return measured.once("speed", lambda: next(numbers))

    return ask


@pytest.mark.specification
def test_processes_go_by_the_first_measurement(
    file: Path, in_a_new_process: Callable[[], float]
) -> None:
    assert [in_a_new_process() for _ in range(3)] == [1.16] * 3
    assert json.loads(file.read_text()) == {measured.cpu(): {"speed": 1.16}}


def test_each_precision_is_measured_by_itself(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([(2.0, 1.0), (1.0, 4.0)])
    monkeypatch.setattr(measured, "_known", {})
    monkeypatch.setattr(measured, "least_seconds", lambda *functions: next(seconds))
    monkeypatch.setattr(half, "SIDE", 2)
    assert [half.slowdown(name) for name in ("bf16", "fp16", "bf16")] == [2, 0.25, 2]


def test_who_measured_meanwhile_is_first(
    file: Path, in_a_new_process: Callable[[], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two begin at once: what the other wrote while this one waited for the lock is taken."""

    def wait(*lock: Any) -> None:
        file.write_text(json.dumps({measured.cpu(): {"speed": 9.0, "other": 2.0}}))

    monkeypatch.setattr(measured.fcntl, "flock", wait)
    assert in_a_new_process() == 9.0


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[1]",
        "{",
        "[" * 99999,
        '{"CPU": 1}',
        '{"CPU": {"speed": "fast"}}',
        '{"CPU": {"speed": NaN}}',
        '{"CPU": {"speed": true}}',
        '{"CPU": {"speed": -1.0}}',
        '{"another CPU": {"speed": 9.0}}',
    ],
)
def test_a_damaged_or_foreign_file_is_measured_anew(
    content: str, file: Path, in_a_new_process: Callable[[], float]
) -> None:
    file.parent.mkdir()
    file.write_text(content.replace('"CPU"', json.dumps(measured.cpu())))
    assert [in_a_new_process() for _ in range(2)] == [1.16] * 2
    assert ("another CPU" in file.read_text()) == (
        "another CPU" in content
    )  # of a home that machines share


@pytest.mark.parametrize("change", [("ONEDNN_MAX_CPU_ISA", "AVX"), "processor", "flags"])
def test_another_cpu_is_measured(
    change: Any, file: Path, in_a_new_process: Callable[[], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = in_a_new_process()
    if isinstance(change, tuple):
        monkeypatch.setenv(*change)
    else:
        monkeypatch.setattr(machine, change, lambda: "another")
    assert (first, in_a_new_process()) == (1.16, 1.21)
    assert len(json.loads(file.read_text())) == 2


def test_a_folder_that_cannot_be_written_is_said_and_changes_nothing_in_a_process(
    tmp_path: Path, in_a_new_process: Callable[[], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for folder in (str(tmp_path / "file"), "relative"):
        monkeypatch.setenv(measured.FOLDER, folder)
        with pytest.warns(
            InputWarning, match=f"^{folder}/cpu.json: cannot be written .*VSE_PIPELINE_CACHE$"
        ):
            found = in_a_new_process()
        assert measured.once("speed", lambda: 9.0) == found
    assert not Path("relative").exists()


@pytest.mark.parametrize("link", [".cpu.json.lock", "cpu.json"])
def test_a_link_in_the_folder_is_no_way_to_another_file(
    link: str, tmp_path: Path, in_a_new_process: Callable[[], float], monkeypatch: Any
) -> None:
    monkeypatch.setenv(measured.FOLDER, str(tmp_path))
    (tmp_path / "valued").write_text("kept")
    (tmp_path / "valued").chmod(0o444)
    (tmp_path / link).symlink_to("valued")
    with pytest.warns(InputWarning, match=r"cpu.json: cannot be written"):
        assert in_a_new_process() > 0
    assert (tmp_path / "valued").read_text() == "kept"


def test_the_users_cache_folder_is_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(measured.FOLDER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert measured.kept_in() == tmp_path / "cache" / "vse-pipeline" / "cpu.json"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert measured.kept_in() == tmp_path / ".cache" / "vse-pipeline" / "cpu.json"


def test_tests_are_given_every_kind_of_cpu(given_cpu: dict[str, float]) -> None:
    expected = "bf16" if given_cpu == given_cpus.AMX else "fp32"
    assert half.fastest("cpu") == expected


def test_a_test_that_measures_the_real_cpu_fails(file: Path) -> None:
    given_cpus.refuse_measured(given_cpus.write(file.parent, given_cpus.PLAIN))
    measured.once("what no test was given", lambda: 1.0)
    with pytest.raises(AssertionError, match="asks for the real CPU's speed"):
        given_cpus.refuse_measured(file.parent)


def test_so_does_one_that_is_given_another_cpu(tmp_path: Path) -> None:
    with given_cpus.given(tmp_path, given_cpus.PLAIN):
        assert half.fastest("cpu") == "fp32"
    with (
        pytest.raises(AssertionError, match="asks for the real CPU's speed"),
        given_cpus.given(tmp_path, given_cpus.PLAIN),
    ):
        measured.once("what no test was given", lambda: 1.0)

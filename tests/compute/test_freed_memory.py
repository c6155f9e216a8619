"""A training process keeps the memory of deleted tensors, in large pages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.foundation.compute import machine

MAKE_AND_DELETE = """
import resource
import torch
from pipeline.foundation.compute import machine

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty(8 * 2**20).fill_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(min(faults() for _ in range(4)))
assert machine.keep_freed()
print(max([faults() for _ in range(40)][20:]))  # at first small objects come to lie in the freed memory
"""
PAGES = 32 * 2**20 // 4096
"""Of the tensor."""


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="only glibc's allocator keeps memory on request"
)
def test_memory_of_deleted_tensors_is_used_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAKE_AND_DELETE],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={machine.HUGE_PAGES: "0"},
    )
    given_back, kept = map(int, done.stdout.split())
    assert given_back >= PAGES
    assert kept < PAGES / 100


def test_large_pages_are_asked_for_unless_the_environment_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "MALLOPT", {})  # those would hold for all tests of this process
    monkeypatch.setenv(machine.HUGE_PAGES, "0")
    machine.keep_freed()
    assert machine.os.environ[machine.HUGE_PAGES] == "0"
    monkeypatch.delenv(machine.HUGE_PAGES)
    machine.keep_freed()
    assert machine.os.environ[machine.HUGE_PAGES] == "1"

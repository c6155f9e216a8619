"""CPUs of every kind on any machine: what would be measured of them is written where it is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.foundation.compute import measured

Measurements = dict[str, float]
PLAIN: Measurements = {"bf16 slower": 24.0, "fp16 slower": 499.0}
"""Half precision is refused."""
AMX: Measurements = {"bf16 slower": 0.5, "fp16 slower": 0.5}
"""Half precision is fast."""
VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "MKL_ENABLE_INSTRUCTIONS",
    "NPY_DISABLE_CPU_FEATURES",
    "ONEDNN_MAX_CPU_ISA",
    "OPENBLAS_CORETYPE",
    measured.FOLDER,
)
"""What a process needs of the environment to have the CPU of the test that starts it, given or
simulated."""


def write(folder: Path, cpu: Measurements) -> Path:
    """Give this machine a CPU for as long as the folder is named in the environment."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.json").write_text(json.dumps({measured.cpu(): cpu}), encoding="utf-8")
    return folder


@contextmanager
def given(folder: Path, cpu: Measurements) -> Iterator[Measurements]:
    """Give this machine another CPU meanwhile, and fail if anything was measured of the real
    one.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(measured.FOLDER, str(write(folder, cpu)))
        yield cpu
    refuse_measured(folder)


def refuse_measured(folder: Path) -> None:
    """Fail if anything was measured of the real CPU, here or in a process that a test started; that
    test alone.
    """
    kept = json.loads((folder / "cpu.json").read_text(encoding="utf-8"))
    given = kept in ({measured.cpu(): cpu} for cpu in (PLAIN, AMX))
    if not given:
        write(folder, PLAIN)  # the tests after it are not to blame
    assert given, "this test asks for the real CPU's speed; give it the answer, see given_cpus.py"

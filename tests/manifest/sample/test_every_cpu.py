"""The sample has the same bytes whatever vector instructions the CPU has."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__  # type: ignore[attr-defined]

from pipeline.foundation.manifest.sample import elementary

ROOT = Path(__file__).parents[3]
HERE = [
    name for name in __cpu_dispatch__ if __cpu_features__[name]
]  # from the oldest to the newest
SCENES = (7, 38, 48)
"""Scenes whose pixels NumPy's own functions make otherwise without AVX-512, or without AVX2."""


def digest() -> str:
    """SHA-256 over a few pictures and over every function's values."""
    from pipeline.foundation.manifest.sample.paint import paint
    from pipeline.foundation.manifest.sample.scenes import compose

    found = hashlib.sha256()
    for scene in SCENES:
        found.update(paint(compose(0, scene), 256, np.random.default_rng([0, scene, 2])).tobytes())
    for dtype in (np.float32, np.float64):
        x = np.linspace(-1, 1, 10_000, dtype=dtype)
        for values in (
            elementary.sin(99 * x),
            elementary.cos(99 * x),
            elementary.decay(9 * x - 9),
            elementary.arcsin(x),
            elementary.arctan2(x, x[::-1]),
            elementary.hypot(x, x[::-1]),
            elementary.cbrt(x),
        ):
            found.update(values.tobytes())
    return found.hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("off", [HERE[k:] for k in range(len(HERE[:2]))] or [[]], ids="-".join)
def test_pictures_without_some_instructions(off: list[str]) -> None:
    environment = {
        **os.environ,
        "NPY_DISABLE_CPU_FEATURES": " ".join(off),
        "JSIMD_FORCENONE": "1",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{Path(__file__).parent}",
    }
    command = [sys.executable, "-c", "import test_every_cpu; print(test_every_cpu.digest())"]
    reported = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert reported.stdout.strip() == digest()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_are_what_they_are_called(dtype: type) -> None:
    x = np.linspace(-1, 1, 20_000, dtype=dtype)
    y = x[::-1].copy()
    for ours, theirs in (
        (elementary.sin(600 * x), np.sin(600 * x)),
        (elementary.cos(600 * x), np.cos(600 * x)),
        (elementary.decay(20 * x - 20), np.exp(20 * x - 20)),
        (elementary.arcsin(x), np.arcsin(x)),
        (elementary.arctan2(x, y), np.arctan2(x, y)),
        (elementary.arctan2(x, -y), np.arctan2(x, -y)),
        (elementary.hypot(x, y), np.hypot(x, y)),
        (elementary.cbrt(x), np.cbrt(x)),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=6e-5)

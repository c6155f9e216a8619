"""A data set of MMEB that tests share, and a folder of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_files import Encoded


@pytest.fixture
def encoded(tmp_path: Path, rng: np.random.Generator) -> Encoded:
    return Encoded(tmp_path, rng)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

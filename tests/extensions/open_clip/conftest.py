"""The library's tokenizer for all models of these tests: reading its byte pairs takes longer than
making a model.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest


@cache
def tokenizer(**options: Any) -> Any:
    from open_clip.tokenizer import SimpleTokenizer

    return SimpleTokenizer(**options)


@pytest.fixture(autouse=True)
def _byte_pairs_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("open_clip.factory.SimpleTokenizer", tokenizer)

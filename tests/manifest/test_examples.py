"""Every layout that users are shown is read as they are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from read_examples import check

from pipeline.foundation.manifest.examples import read_all

EXAMPLES = read_all()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_read_as_it_says(name: str, tmp_path: Path) -> None:
    check(EXAMPLES[name], tmp_path)

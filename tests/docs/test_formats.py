"""The page of formats shows the examples that are read."""

from __future__ import annotations

from pathlib import Path

import formats
import pytest
from other_inputs import INPUTS, SCORES, Input


def test_the_page_shows_todays_examples() -> None:
    assert formats.PAGE.read_text(encoding="utf-8") == formats.page(), (
        "run `python tests/docs/formats.py`"
    )


@pytest.mark.parametrize("made", [*SCORES, *INPUTS], ids=lambda made: made.title)
def test_an_example_is_read(made: Input, tmp_path: Path) -> None:
    made.read(made.write(tmp_path))

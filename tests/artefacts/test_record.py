"""What a record.json says, and one that may be hostile."""

from pathlib import Path

import pytest

from pipeline.foundation.artefacts import record
from pipeline.foundation.files.parsing import DEEPEST
from pipeline.foundation.parts.errors import InputError


def written(folder: Path, levels: int) -> None:
    nested = '{"a":' * levels + "1" + "}" * levels
    (folder / record.FILE).write_text(f'{{"kind": "head", "facts": {nested}, "finished": true}}')


@pytest.mark.parametrize("levels", [DEEPEST + 1, 300, 900, 200_000])
def test_facts_of_hundreds_of_levels_are_damage(levels: int, tmp_path: Path) -> None:
    written(tmp_path, levels)
    with pytest.raises(ValueError, match="nested"):
        record.load(tmp_path)
    with pytest.raises(InputError, match="damaged"):
        record.require(tmp_path)


def test_facts_of_some_levels_are_read(tmp_path: Path) -> None:
    written(tmp_path, 9)
    assert record.load(tmp_path).facts["a"]["a"].keys() == {"a"}


def test_the_identity_is_that_of_what_was_made() -> None:
    """Neither where, on which machine nor whether it is finished counts; all else does."""
    made = record.Record(
        kind="store",
        request={"images": 3},
        versions={"grid": 1},
        contents={"features": "a"},
        facts={"width": 8, "from": {"name": "x", "place": "/data/x"}},
    )
    same = {
        "facts": {"width": 8, "from": {"name": "x", "place": "/elsewhere/x"}},
        "machines": [{"cpu": "another"}],
        "finished": True,
        "seal": "b",
    }
    for field, value in same.items():
        assert made.changed(**{field: value}).identity == made.identity, field
    other = {
        "kind": "head",
        "request": {"images": 4},
        "made_from": {"manifest": made.refers("m")},
        "versions": {"grid": 2},
        "contents": {"features": "b"},
        "facts": {"width": 9, "from": {"name": "x", "place": "/data/x"}},
    }
    for field, value in other.items():
        assert made.changed(**{field: value}).identity != made.identity, field
    assert {*same, *other} == set(record.Record.model_fields)

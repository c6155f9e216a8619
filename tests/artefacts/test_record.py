"""A record.json that may be hostile."""

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

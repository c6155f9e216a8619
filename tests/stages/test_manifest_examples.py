"""`pipeline manifest --examples` writes right files: the command that it prints reads each."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.foundation.manifest.examples import read_all
from pipeline.foundation.parts.errors import InputError
from stages.commands.manifest import manifest_command

pytestmark = pytest.mark.slow

EXAMPLES = read_all()


def ran(*words: str) -> str:
    given = CliRunner().invoke(manifest_command, [*words], catch_exceptions=False)
    assert given.exit_code == 0, given.output
    return given.output


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The words behind `pipeline manifest` of each command that is printed, by its data set."""
    folder = tmp_path_factory.mktemp("written") / "with blanks"
    commands = [
        shlex.split(line)[2:]
        for line in ran("--examples", str(folder)).splitlines()
        if line.startswith("  ")
    ]
    return {words[0]: words for words in commands}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_command_that_is_printed_reads_the_example(
    printed: dict[str, list[str]], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"{len(EXAMPLES[name].rows)} caption" in ran(*printed[f"example-{name}"])


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty; name another folder"):
        CliRunner().invoke(manifest_command, ["--examples", str(tmp_path)], catch_exceptions=False)
    assert [each.name for each in tmp_path.iterdir()] == ["mine.txt"]

"""README, then docs/first-run.md: every line of their blocks, one after the other, in a finished
run of the sample.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
from pathlib import Path

import given_cpus
import pytest
from preloaded import Commands
from tiny_project import BINARIES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
QUICKER = r"""
sed -Ei 's/(epochs): 30$/\1: 1/; s/(decay_epoch): 20$/\1: 1/' params.yaml
sed -i 's/^extract:.*/extract:\n  backend: torch/' params.yaml
cat >> params.yaml <<'end'
features:
  light:
    region: {network: test_efficientnet, weights: untrained, image_size: 128}
    grid: {network: test_efficientnet, weights: untrained, image_size: 64, grid: 2}
end
"""
"""The lines that are not the pages': the test waits neither for 30 epochs nor for large
networks.
"""
README, FIRST_RUN = (
    (ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/first-run.md")
)


def blocks(page: str, language: str) -> list[str]:
    """A page's fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def python(block: str, folder: Path) -> str:
    """What a block prints."""
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(block, {})
    return printed.getvalue()


@pytest.fixture(scope="module")
def folder(finished: Path, commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run, with an environment to activate at .venv, as `make repro` leaves it."""
    copy = tmp_path_factory.mktemp("readme") / "clone"
    shutil.copytree(finished, copy)
    binaries = copy / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "activate").write_text(
        f"export PATH={commands.folder}:{BINARIES}:$PATH\n", encoding="utf-8"
    )
    python(blocks(README, "python")[0], copy)
    return copy


def run(lines: str, folder: Path) -> str:
    """What lines print in a shell of their own, after the environment is active."""
    script = folder / "pasted.sh"
    script.write_text(f"source .venv/bin/activate\nset -e\n{lines}", encoding="utf-8")
    needed = ("HOME", "PYTHONPATH", "TMPDIR", *given_cpus.VARIABLES)
    bare = {name: value for name, value in os.environ.items() if name in needed}
    ran = subprocess.run(
        ["bash", script.name],
        cwd=folder,
        text=True,
        capture_output=True,
        check=False,
        timeout=600,
        env={**bare, "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    return ran.stdout


def test_the_commands_print_what_readme_shows(folder: Path) -> None:
    shown = [line for line in blocks(README, "text")[0].splitlines() if line.strip() != "…"]
    assert len(shown) > 20
    printed = run(blocks(README, "sh")[0], folder).splitlines()
    assert [line for line in shown if line not in printed] == []
    assert "ours & " in (folder / "table.tex").read_text(encoding="utf-8")


def test_the_page_for_reviewers_shows_what_readme_does() -> None:
    """The test above runs these commands."""
    page = (ROOT / "docs" / "referee.md").read_text(encoding="utf-8")
    commands = blocks(page, "sh")[0].splitlines()[1:]
    assert len(commands) == 2
    for command in commands:
        assert command in blocks(README, "sh")[0]
    lines = {line for line in blocks(page, "text")[0].splitlines() if line.strip() != "…"}
    assert len(lines) > 10
    assert lines <= {*blocks(README, "text")[0].splitlines()}


def test_the_lines_of_python_print_what_readme_shows(folder: Path) -> None:
    block = blocks(README, "python")[1]
    assert len(block.strip().splitlines()) <= 15
    assert python(block, folder) == blocks(README, "text")[1]


def test_every_line_works_after_the_one_before(folder: Path) -> None:
    _, made, *others = blocks(README, "sh")
    assert re.findall(r"^make (\w+)", made, re.MULTILINE) == [
        "repro",
        "test",
    ]  # the run is what this one made
    lines = "\n".join([*others, *blocks(FIRST_RUN, "sh")])
    assert lines.count("\ncd mine\n") == 1
    run(lines.replace("\ncd mine\n", f"\ncd mine\n{QUICKER}"), folder)
    assert (folder / "mine" / "results" / "metrics.json").exists()
    assert (folder / "results" / "search.html").exists()


def test_a_head_is_opened_in_three_lines(folder: Path) -> None:
    assert 0 <= int(python(blocks(FIRST_RUN, "python")[0], folder)) < 24


def test_what_it_says_is_in_a_folder_is_there(folder: Path) -> None:
    named = re.findall(
        r"`((?:results|docs|manifests|stages|pipeline)/[\w./-]*|\w+\.(?:ya?ml|md|cff))`", README
    )
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert len(named) > 5 < len(links)
    assert [
        name
        for name in [*named, *links]
        if not (ROOT / name).exists() and not (folder / name).exists()
    ] == []

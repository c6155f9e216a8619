"""Commands, run in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stages import cli

PARAMS = str(Path(__file__).parents[2] / "params.yaml")
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch, capfd: Any, tmp_path: Path) -> Cli:
    """A command with the project's settings, in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["pipeline", *map(str, arguments), "--params", PARAMS])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return int(ended.value.code or 0), out, err
    return run


@pytest.fixture
def refused(pipeline: Cli) -> Callable[..., str]:
    """A command that must end with exit code 2: its last line."""
    def run(*arguments: str | Path) -> str:
        code, _, err = pipeline(*arguments)
        assert code == 2, err
        return err.strip().splitlines()[-1]
    return run

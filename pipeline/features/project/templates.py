"""The files that a project starts with. In a clone they are those at its root; a wheel carries copies of them."""

from __future__ import annotations

from pathlib import Path

SHIPPED = {"params.yaml": "params.yaml", "dvc.yaml": "dvc.yaml", ".gitignore": "gitignore", ".dvcignore": "dvcignore"}
"""File -> its name beside this module in an installed copy, where `pyproject.toml` puts it."""


def path(name: str) -> Path:
    """Find a shipped file."""
    installed = Path(__file__).parent / "templates" / SHIPPED[name]
    return installed if installed.is_file() else Path(__file__).parents[3] / name

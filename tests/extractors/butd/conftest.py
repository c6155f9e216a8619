"""detectron2 for these tests alone: `make setup` puts its Python part where nothing else looks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(sys.prefix) / "detectron2-tests"))  # last: an installed detectron2 goes first


@pytest.fixture(autouse=True, scope="session")
def _quiet_import() -> None:
    """Import detectron2 once, before a test counts its warnings: old parts of torch that it uses warn."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import detectron2.modeling  # noqa: F401

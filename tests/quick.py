"""What `make test-quick` leaves out: the marker `slow` for tests whose fixtures take seconds.

Tests of commands, extensions, encoders and engines carry it in their files.
"""

from __future__ import annotations

import pytest

# They run commands, a whole run, a cluster, a training or an extraction.
SLOW_FIXTURES = {
    "commands",
    "finished",
    "forkserver",
    "pipeline",
    "trained",
    "job",
    "store",
    "scenes",
    "corpus",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them before pytest chooses by markers."""
    for item in items:
        if not SLOW_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)

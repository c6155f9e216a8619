"""How the tests are run: what is imported where, their order, and how a worker ends."""

from __future__ import annotations

import atexit
import gc
import os

import pytest

# Fixtures that are there for all tests, and what `make test-quick` leaves out.
FOR_ALL = ("surroundings", "tiny_corpus", "command_line", "quick", "read_once")
if "PYTEST_XDIST_WORKER" in os.environ:
    # Registered first, so called last. To take all modules down one by one takes a worker ten
    # seconds, in which nobody needs it.
    atexit.register(os._exit, 0)
# Imports and collecting make what stays: looking there for garbage takes a tenth of that time.
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    """Who starts workers runs no test, and imports nothing that tests need."""
    if config.getoption("numprocesses", None):
        return
    for module in FOR_ALL:
        config.pluginmanager.import_plugin(module)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a finished run come first: they take longest, and two workers share the work
    evenly.
    """
    items.sort(key=lambda item: "finished" not in getattr(item, "fixturenames", ()))


def pytest_collection_finish() -> None:
    """The collector leaves alone what all tests have, and comes less often: it walks through less,
    and forked processes copy less.
    """
    gc.enable()
    gc.set_threshold(10_000, 10, 10)
    gc.collect()
    gc.freeze()
    # Else libraries tell at the end of leaks that are none; earlier, pytest would look through all.
    atexit.register(gc.unfreeze)

"""Waiting for another process, with an end."""

from __future__ import annotations

import time
from collections.abc import Callable

LONGEST = 300.0
"""Seconds for which a test waits for another process before it fails; also a busy machine needs far
fewer."""


def until(so: Callable[[], object], what: str, longest: float = LONGEST) -> None:
    """Wait until it is so."""
    last = time.monotonic() + longest
    while not so():
        assert time.monotonic() < last, f"waited {longest:.0f} s for {what}"
        time.sleep(0.01)

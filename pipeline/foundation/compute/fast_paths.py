"""One switch for what makes a CPU faster than torch's own operations do, to find out whether a
result depends on it.

With VSE_PIPELINE_FAST_PATHS=off in the environment, both sides of a head are computed one after the
other on all threads (`threads`), and items are sorted by torch (`heads.pooling.cpu_sort`). Neither
changes a bit.
"""

import os

from pipeline.foundation.parts.errors import InputError

VARIABLE = "VSE_PIPELINE_FAST_PATHS"


def are_on() -> bool:
    """Read the switch."""
    value = os.environ.get(VARIABLE, "on")
    if value not in ("on", "off"):
        raise InputError(f"{VARIABLE}={value!a}: expected on or off")
    return value == "on"

"""A trained head written for other libraries; the extension `exporters` knows two.

base.py   what can be exported, and what the folder says of itself
"""

from collections.abc import Callable
from typing import Any

from pipeline.foundation.parts import lazy

# From a `Head` of two towers and an empty folder to what export.json says of the files that it
# wrote there.
EXPORTERS: "lazy.LookupTable[Callable[..., dict[str, Any]]]" = lazy.LookupTable({}, "exporters")

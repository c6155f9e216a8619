"""What the card of a system says of the photographs and captions that splits share. Extensions
bring it; without any, the card has no such section.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pipeline.foundation.parts.lazy import LookupTable

if TYPE_CHECKING:
    from pipeline.foundation.manifest import Manifest

# Name -> a function that compares the splits of a data set, and says it in lines.
SPLIT_CHECKS: LookupTable[Callable[[Manifest], Sequence[str]]] = LookupTable({}, "split_checks")

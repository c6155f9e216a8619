"""How this machine computes: half precision, threads, memory, what is recorded; and workers."""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.foundation.compute import by_path

lazy.imports(__name__)

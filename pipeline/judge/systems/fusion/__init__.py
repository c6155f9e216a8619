"""Ensembles: the similarities of several systems as one."""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.judge.systems.fusion import combining, methods

lazy.imports(__name__)

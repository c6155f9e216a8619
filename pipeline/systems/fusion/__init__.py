"""Ensembles: the similarities of several systems as one."""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.systems.fusion.methods import FUSIONS, shares

lazy.offer(__name__)

"""The built-in sample corpus: rendered scenes with five captions each, so that nothing need be downloaded."""

from typing import TYPE_CHECKING

from pipeline import lazy

if TYPE_CHECKING:
    from pipeline.sample.corpus import render

__all__ = ["render"]

lazy.offer(__name__)

"""The built-in sample corpus: rendered scenes with five captions each, so that nothing need be downloaded."""

from pipeline.sample.corpus import render

__all__ = ["render"]

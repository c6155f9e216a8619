"""The built-in sample corpus: rendered scenes with five captions each, so that everything runs without a download."""

from pipeline.sample.corpus import render

__all__ = ["render"]

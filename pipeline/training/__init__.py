"""Train heads, keep their checkpoints, and embed with them."""

from pipeline.training.checkpoint import describe
from pipeline.training.embedding import embed
from pipeline.training.head import Head
from pipeline.training.head import load as load_head
from pipeline.training.loop import Diverged, Job, train, usable

__all__ = ["Diverged", "Head", "Job", "describe", "embed", "load_head", "train", "usable"]

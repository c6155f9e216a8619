"""Train heads, keep their checkpoints, and embed with them."""

from pipeline.training.checkpoint import describe
from pipeline.training.divergence import Diverged
from pipeline.training.embedding import embed
from pipeline.training.head import Head
from pipeline.training.head import load as load_head
from pipeline.training.job import Job
from pipeline.training.loop import train, usable
from pipeline.training.processes import launch

__all__ = ["Diverged", "Head", "Job", "describe", "embed", "launch", "load_head", "train", "usable"]

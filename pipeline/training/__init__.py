"""Train heads, keep their checkpoints, and embed with them."""

from typing import TYPE_CHECKING

from pipeline import lazy

if TYPE_CHECKING:
    from pipeline.training.checkpoint import describe
    from pipeline.training.convert import convert
    from pipeline.training.divergence import Diverged
    from pipeline.training.embedding import embed, embed_captions
    from pipeline.training.head import Head
    from pipeline.training.head import load as load_head
    from pipeline.training.job import Job
    from pipeline.training.loop import train, usable
    from pipeline.training.names import RELEASED
    from pipeline.training.processes import launch
    from pipeline.training.released import read as read_released
    from pipeline.training.request import Request, said, scores
    from pipeline.training.source import Photographs, Source, networks
    from pipeline.training.source import of_head as source_of

__all__ = ["RELEASED", "Diverged", "Head", "Job", "Photographs", "Request", "Source", "convert",
           "describe", "embed", "embed_captions", "launch", "load_head", "networks", "read_released", "said",
           "scores", "source_of", "train", "usable"]

lazy.offer(__name__)

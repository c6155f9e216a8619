"""Train heads, keep their checkpoints, and embed with them."""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.files.weights import RELEASED
    from pipeline.training import inputs, pieces
    from pipeline.training.artefact import HeadArtefact, HeadFacts
    from pipeline.training.checkpoint import summary
    from pipeline.training.divergence import Diverged
    from pipeline.training.head import Head, HeadUse, OpenHead
    from pipeline.training.loop import train
    from pipeline.training.photographs import Photographs, photographs_of
    from pipeline.training.processes import launch
    from pipeline.training.released import convert, read as read_released
    from pipeline.training.released_cross import (
        convert_cross,
        read as read_released_cross,
        recipe_of,
    )
    from pipeline.training.request import TrainRequest, check_parts
    from pipeline.training.source import ImageSource, networks, stored, usable
    from pipeline.training.training_job import TrainingJob

lazy.imports(__name__)

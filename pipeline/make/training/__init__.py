"""Train heads, keep their checkpoints, and embed with them."""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.foundation.files.weights import RELEASED
    from pipeline.make.training import inputs, pieces
    from pipeline.make.training.artefact import HeadArtefact, HeadFacts
    from pipeline.make.training.checkpoint import summary
    from pipeline.make.training.divergence import Diverged
    from pipeline.make.training.head import Head, HeadUse, OpenHead
    from pipeline.make.training.loop import train
    from pipeline.make.training.photographs import Photographs, photographs_of
    from pipeline.make.training.processes import launch
    from pipeline.make.training.released import convert, read as read_released
    from pipeline.make.training.released_cross import (
        convert_cross,
        read as read_released_cross,
        recipe_of,
    )
    from pipeline.make.training.request import TrainRequest, check_parts
    from pipeline.make.training.source import ImageSource, networks, stored, usable
    from pipeline.make.training.training_job import TrainingJob

lazy.imports(__name__)

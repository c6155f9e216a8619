"""Hard-negative text: whether a system prefers an image's caption to one that is nearly the same
and wrong.

    questions.py   an image with right and wrong captions, its CSV, and readers of published
                   benchmarks with their cards
    swaps.py       wrong captions made of a data set's own: colour, number, order, left and right
                   (with words.yaml)
    systems.py     the systems that are asked: a trained head, or a pretrained dual encoder
    accuracy.py    from similarities to accuracies with intervals over images
    command.py     `pipeline lab hard-negatives`: its options
    stage.py       and what it does

A new format is a file here and a line in `READERS`.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy
from pipeline.foundation.parts.extension import Command, Extension

if TYPE_CHECKING:
    from pipeline.extensions.hard_negatives import systems

_COMMAND = Command(
    purpose="Measure how often a right caption beats a nearly equal one.",
    place="pipeline.extensions.hard_negatives.command:hard_negatives_command",
    extra="training",
)
_READERS = {"readers of questions": "pipeline.extensions.hard_negatives.questions:READERS"}
EXTENSION = Extension(parts={"kinds of parts": _READERS}, commands={"lab hard-negatives": _COMMAND})

lazy.imports(__name__)

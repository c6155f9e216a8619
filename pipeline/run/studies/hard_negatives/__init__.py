"""Hard-negative text: whether a system prefers an image's caption to one that is nearly the same
and wrong.

    questions.py   an image with right and wrong captions, its CSV, and readers of published
                   benchmarks with their cards
    swaps.py       wrong captions made of a data set's own: colour, number, order, left and right
                   (with words.yaml)
    systems.py     the systems that are asked: a trained head, or a pretrained dual encoder
    accuracy.py    from similarities to accuracies with intervals over images

A new format is a file here and a line in `READERS`.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.run.studies.hard_negatives import systems

lazy.imports(__name__)

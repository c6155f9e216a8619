"""Hard-negative text: whether a system prefers an image's caption to one that is nearly the same and wrong.

    question.py        an image with right and wrong captions, and a CSV of them
    reading.py         the readers by name, and the cards of published benchmarks
    json_files.py      readers of published benchmarks
    swaps.py           wrong captions made of a data set's own: colour, number, order, left and right
    system.py          what answers questions: anything that embeds images and captions
    of_head.py, of_encoder.py   the vectors of a trained head, and of a dual encoder as it comes
    accuracy.py        from similarities to accuracies with intervals over images

A new format is a file here and a line in `READERS`.
"""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.studies.hard_negatives.accuracy import Accuracy, accuracies, compare, grouped, with_control
    from pipeline.studies.hard_negatives.question import Question, save
    from pipeline.studies.hard_negatives.reading import READERS, read
    from pipeline.studies.hard_negatives.swaps import of_captions

lazy.offer(__name__)

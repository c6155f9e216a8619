"""Heads, dual encoders and scorers of pairs as models of the library `mteb`, which measures them on its own tasks.

    models.py   a head or a dual encoder as an encoder of mteb, a scorer of pairs as a cross-encoder of mteb
    task.py     a split of one's own data as a task of mteb
"""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.studies.mteb.models import MtebCrossEncoder, MtebEncoder
    from pipeline.studies.mteb.task import of_split

lazy.offer(__name__)

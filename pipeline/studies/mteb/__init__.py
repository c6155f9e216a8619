"""Heads, dual encoders and scorers of pairs as models of the library `mteb`, which measures them on its own tasks.

    encoder.py         a head or a dual encoder as an encoder of mteb, and what mteb is told of a model
    cross_encoder.py   a cross-encoder or a late-interaction head as a cross-encoder of mteb
    task.py            a split of one's own data as a task of mteb
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.studies.mteb.cross_encoder import MtebCrossEncoder
    from pipeline.studies.mteb.encoder import MtebEncoder
    from pipeline.studies.mteb.task import of_split

lazy.offer(__name__)

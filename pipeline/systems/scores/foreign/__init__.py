"""Scores as people have them: what a user types becomes a `System`.

    sims.npy                    a file, whatever it holds; `READERS` names who reads it
    images.npy:captions.npy     two files of vectors, whose inner products are the scores
    arrays.npz:sims             one array of a file with several; two are vectors
    runs/vse-s0.zarr            a store of this pipeline, or any zarr array

A reader is a new file here and a line in `READERS`.
"""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.systems.scores.foreign.opening import open_system

lazy.offer(__name__)

"""Scores as people have them: what a user types becomes a `System` by `open_system`.

    sims.npy                    a file, whatever it holds
    images.npy:captions.npy     two files of vectors, whose inner products are the scores
    ids.npy:scores.npy          each query's best candidates, and their scores
    arrays.npz:sims             one array of a file with several; two are vectors, or ids and scores
    similarities/…/NAME.zarr    a store of this pipeline
    clip:FOLDER                 a pretrained encoder, with images and captions

    opening.py     from text to a system: what a file is, and the table of those that read it; a
                   matrix alone is read there
    held.py        which array of a file is what, by its name (words.py) and type
    scores.py      the scores that they make; beside.py: the ids that are with them
    top_lists.py   lists of the best, of a run or in arrays
    hits_file.py   ranks without scores, which `evaluate --hits` writes
    identified.py  which images and captions rows and columns are; owned.py: each caption's image
    arrays.py      named arrays; beside it a file for each kind that is read

A reader is a new file here and a line in `READERS` of opening.py.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.judge.systems.scores.foreign.opening import model_of, open_system

lazy.imports(__name__)

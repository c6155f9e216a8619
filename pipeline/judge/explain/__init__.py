"""Why a published number is not reached: the differences of measurement that people make, searched
for.

    differences.py  what may be different, by steps: vectors, scores, pool, ranking, metric,
                    rounding
    printed.py      published numbers, as typed or from the shipped tables
    given.py        what is known of the images and captions, and which measurements that allows
    arrays.py       scores in memory: products of vectors, and values of fewer bits
    measuring.py    numbers of many measurements, each ranking once
    search.py       one difference, then several together
    of_arrays.py    `explain` for numpy arrays
    opening.py      what a user names: files and systems, with their splits, texts and judgements
    explained.py    the answer as text, Markdown and JSON

A new difference is a line in `DIFFERENCES`.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.judge.explain.explained import Explanation, Variant
    from pipeline.judge.explain.of_arrays import explain

lazy.imports(__name__)

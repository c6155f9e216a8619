"""Values rounded to a type of two bytes, half to even, and kept as float32."""

from typing import Literal, TypeAlias

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import Cells

Precision: TypeAlias = Literal["given", "float16", "bfloat16"]


def rounded(values: Cells, precision: Precision) -> Cells:
    """Round values of any shape; "given" leaves them."""
    if precision == "given":
        return values
    cells = np.empty(values.shape, np.float32)
    round_into(cells, values, precision)
    return cells


def round_into(cells: Cells, values: Cells, precision: Precision) -> None:
    """Write rounded values into float32 of their shape."""
    if precision == "given":
        cells[...] = values
        return
    if precision == "float16":
        with np.errstate(over="ignore"):
            cells[...] = values.astype(np.float16)
        return
    cells[...] = values
    words = cells.view(np.uint32)
    last_kept_bit = (words >> 16) & 1
    # Half of the last kept bit, less one where that bit is 0.
    words += last_kept_bit + np.uint32(0x7FFF)
    words &= np.uint32(0xFFFF0000)

"""Why a published number cannot be reproduced: a search among the differences of measurement that
people make.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.judge.explain.explained import Explanation, Variant
    from pipeline.judge.explain.of_arrays import explain

lazy.imports(__name__)

"""The features of one image, as an engine computes them or a source of features has them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Items:
    """One image's features."""

    features: np.ndarray  # Float32 [n, D], n at least 1
    # Name -> [n, ...], what is stored beside the features.
    extras: Mapping[str, np.ndarray] = field(default_factory=dict)

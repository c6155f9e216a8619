"""How well GPO's generators learn known pooling patterns (VSE∞ B.3, Table 11).

Random features are pooled with a pattern's coefficients. A GPO learns from these inputs and outputs
alone, on sets of some sizes. Then its coefficients are compared with the pattern's, on those sizes
and on others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pipeline.foundation.parts.errors import refusing

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.foundation.settings import Synthetic
    from pipeline.make.heads.pooling.gpo import GPO

Floats = npt.NDArray[np.float32]
# (input representation, decoder), as Table 11 names them -> GPO's options. The last is of Table 8,
# not of Table 11.
DESIGNS: dict[tuple[str, str], dict[str, Any]] = {
    ("Index", "Interp."): {"generator": "interpolated"},
    ("Cos/Sin", "MLP"): {"generator": "mlp"},
    ("Index", "BiGRU"): {"generator": "bigru", "positions": "index"},
    ("Cos/Sin", "BiGRU"): {"generator": "bigru"},
    ("Cos/Sin", "Transformer"): {"generator": "transformer"},
}


def largest(count: int) -> Callable[[int], Floats]:
    """M-K: the mean of the K largest items, of all if there are fewer."""

    def coefficients_of(size: int) -> Floats:
        weights = np.zeros(size, np.float32)
        weights[:count] = 1 / min(count, size)
        return weights

    return coefficients_of


def equal(size: int) -> Floats:
    """A: the mean of all items."""
    mean = largest(size)
    return mean(size)


def largest_half(size: int) -> Floats:
    """T-50%: the mean of the largest half, rounded up."""
    mean = largest(math.ceil(size / 2))
    return mean(size)


def linear(size: int) -> Floats:
    """L: weights that fall linearly to zero at the smallest item."""
    falling = np.arange(size - 1, -1, -1, dtype=np.float32)
    return falling / falling.sum()


# Pattern -> a function from a set's size N, at least 2, to the coefficients of its items, largest
# first: float32 [N] of sum 1.
PATTERNS: dict[str, Callable[[int], Floats]] = {
    "A": equal,
    "M-1": largest(1),
    "M-10": largest(10),
    "T-50%": largest_half,
    "L": linear,
}


def train(
    design: tuple[str, str],
    pattern: str,
    settings: Synthetic,
    on_step: Callable[[float], None] = lambda loss: None,
) -> GPO:
    """Train a GPO on a pattern, from random sets of the sizes in `settings.seen`."""
    import torch

    from pipeline.make.heads.pooling.gpo import GPO
    from pipeline.make.heads.pooling.options import GPOOptions
    from pipeline.make.heads.pooling.sort import sort_descending

    torch.manual_seed(settings.seed)
    options = GPOOptions(**DESIGNS[design])
    gpo = GPO(settings.dimension, options)
    optimizer = torch.optim.Adam(gpo.parameters(), lr=settings.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, settings.steps)
    first, last = settings.seen
    # Patterns are for two items at least; smaller sets are not drawn.
    sizes = torch.arange(last + 1).clamp(min=2)
    targets = coefficients(pattern, sizes)
    for _ in range(settings.steps):
        counts = torch.randint(first, last + 1, (settings.sets,))
        largest_set = int(counts.max())
        items = torch.randn(settings.sets, largest_set, settings.dimension)
        is_item = torch.arange(largest_set) < counts[:, None]
        ordered = sort_descending(items, is_item)
        of_pattern = targets[counts, :largest_set, None]
        expected = (ordered * of_pattern).sum(1)
        pooled = (ordered * gpo.coefficients(counts)).sum(1)
        loss = (pooled - expected).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        on_step(float(loss.detach()))
    return gpo.eval()


def coefficients(pattern: str, sizes: Tensor) -> Tensor:
    """A pattern's coefficients for sets of U sizes: float32 [U, greatest size], zero beyond a set's
    own size.
    """
    import torch

    of_sets = torch.zeros(len(sizes), int(sizes.max()))
    for coefficients_of_set, size in zip(of_sets, sizes.tolist(), strict=True):
        coefficients_of_set[:size] = torch.from_numpy(PATTERNS[pattern](size))
    return of_sets


def errors(gpo: GPO, pattern: str, settings: Synthetic) -> dict[str, float]:
    """RMSE of a GPO's coefficients for seen, unseen smaller and larger sizes: means over positions,
    then over sizes.
    """
    import torch

    smallest_set, largest_set = settings.tested
    first_seen, last_seen = settings.seen
    ranges = {
        "rmse_seen": (first_seen, last_seen),
        "rmse_unseen_smaller": (smallest_set, first_seen - 1),
        "rmse_unseen_larger": (last_seen + 1, largest_set),
    }
    error_of = {}
    with torch.no_grad():
        for range_name, (smallest, greatest) in ranges.items():
            sizes = torch.arange(smallest, greatest + 1)
            learned = gpo.coefficients(sizes).squeeze(2)
            coefficient_errors = learned - coefficients(pattern, sizes)
            of_sizes = coefficient_errors.square().sum(1) / sizes
            error_of[range_name] = float(of_sizes.mean().sqrt())
    return error_of


def complete_rows(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Select the rows of those designs that were trained on all patterns."""
    with refusing(
        (KeyError, TypeError),
        "results/synthetic.json: not as `pipeline lab synthetic` writes it; delete it "
        "and run that again",
    ):
        rows = list(results["rows"])
        patterns_of: dict[tuple[str, str], set[str]] = {}
        for row in rows:
            patterns = patterns_of.setdefault(_design(row), set())
            patterns.add(row["pattern"])
    return [row for row in rows if patterns_of[_design(row)] == set(PATTERNS)]


def _design(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["input_repr"], row["decoder"]

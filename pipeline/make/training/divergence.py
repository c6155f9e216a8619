"""Detect failed training early: a loss that is not finite, or a model that cannot tell pairs
apart.
"""

import math
from collections.abc import Mapping

import torch

from pipeline.foundation.parts.errors import InputError
from pipeline.make.heads.objectives import Objective

# Steps that are judged together; an epoch, if that is shorter.
WINDOW = 200
# The least number of steps at the collapsed value of the loss after which training counts as stuck.
LONG = 400
# The least share of all steps at that value, too: the hard triplet loss often collapses at first,
# and recovers much later.
LONG_SHARE = 0.25
# Steps in a row that fp16 may leave out: each halves the scale of the loss, so more than enough to
# find a good one.
OVERFLOWS = 50
# Similarities count as equal if the greatest is less than this above the least.
LEAST_SPREAD = 1e-4
# A model has not learnt which pairs are right if their mean similarity is less than this above that
# of all others. Three times the noise of chance over a window; features of an untrained network
# give 0.014 over Flickr8k's first epoch.
LEAST_SEPARATION = 0.002
# A loss is at its collapsed value where it differs by no more than this share of it.
NEAR_COLLAPSE = 0.05


class Diverged(InputError):
    """Training has failed. The message says what happened and what to try."""


class Watch:
    """Checks the log of every step."""

    def __init__(
        self, objective: Objective | None, batch: int, steps: int, epochs: int, stuck: int = 0
    ) -> None:
        self.objective = objective
        self.batch = batch
        self.window = min(WINDOW, steps)
        self.stuck = stuck
        self.long = max(LONG, LONG_SHARE * steps * epochs)
        self._seen: list[Mapping[str, float]] = []
        self._overflows = 0

    def start_epoch(self) -> None:
        """Begin a new window. Windows end with their epoch, so that a resumed run has the same
        ones.
        """
        self._seen = []

    def see(self, log: Mapping[str, float], where: str, precision: str) -> None:
        """Check a step."""
        half = ""
        checked: tuple[str, ...] = ("loss", "similarity")
        if precision != "fp32":
            half = f"precision fp32 instead of {precision}, "
        if precision != "fp16":
            checked = (*checked, "gradient")
        for name, value in log.items():
            if name.endswith(checked) and not math.isfinite(value):
                raise Diverged(
                    f"{where}: the {name} is {value}; try {half}a lower learning_rate or gradient_clip"
                )
        self._overflows += 1
        if math.isfinite(log["gradient"]):
            self._overflows = 0
        if self._overflows == OVERFLOWS:
            raise Diverged(
                f"{where}: gradients have overflowed for {OVERFLOWS} steps; try {half}a lower learning_rate"
            )
        self._seen.append(log)
        if len(self._seen) == self.window:
            self._judge(where)
            self._seen = []

    def _judge(self, where: str) -> None:
        spread = self._mean("spread")
        if spread < LEAST_SPREAD:
            raise Diverged(
                f"{where}: all similarities have been equal, to {spread:.1g}, for {self.window} steps; try "
                "a lower learning_rate or another pooling, and see that the features are not all alike"
            )
        if self.objective is None:
            return
        loss = self._mean("loss")
        collapsed = self._collapsed(self.objective, self._mean("similarity"))
        near = abs(loss - collapsed) <= NEAR_COLLAPSE * abs(collapsed)
        if near and self._mean("separation") < LEAST_SEPARATION:
            self.stuck += 1
        else:
            self.stuck = 0
        if self.stuck * self.window >= self.long:
            raise Diverged(
                f"{where}: for {self.stuck * self.window} steps the loss has stayed at {loss:.4g}, its "
                f"value when all similarities are equal ({collapsed:.4g}); try a lower learning_rate, "
                "objective.all_negatives_epochs of 1 or more for triplet, or a larger batch"
            )

    def _mean(self, name: str) -> float:
        return sum(log[name] for log in self._seen) / self.window

    def _collapsed(self, objective: Objective, similarity: float) -> float:
        """The loss when all similarities are this: 2 α B for the hard triplet, 2 log B for
        InfoNCE.
        """
        logged = objective.log
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            loss = objective(torch.full((self.batch, self.batch), similarity))
        objective.log = logged
        return float(loss)

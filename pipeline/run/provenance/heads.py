"""Finished heads as tables, figures and the report page show them: their settings, and the history
of training.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.settings.features import FEATURES
from pipeline.judge.systems.scores.made import Member
from pipeline.make.training.artefact import BEST, HeadArtefact
from pipeline.make.training.made_of_head import member_of

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor


class TrainedHead(HeadArtefact):
    """One finished head, with the history of its training."""

    @classmethod
    def open(cls, folder: Path, *names: str) -> Self:
        """Open a head's folder and read its history, see `Artefact.open`."""
        head = super().open(folder, "history.csv", "steps.csv", *names)
        with refusing(
            (KeyError, ValueError), f"{folder}/history.csv: not readable; train the head again"
        ):
            if head.request.feature not in FEATURES:
                raise KeyError("feature")
            if not all({"epoch", "RSUM"} <= row.keys() for row in head.history):
                raise KeyError("history")
        return head

    @cached_property
    def history(self) -> tuple[Mapping[str, float], ...]:
        """A row for each epoch, as in history.csv; () for a published checkpoint."""
        import pandas as pd

        file = self.folder / "history.csv"
        if not file.exists():
            return ()
        return tuple(pd.read_csv(file).to_dict("records"))  # type: ignore[arg-type]

    @property
    def run_key(self) -> tuple[str, str, int]:
        """Recipe, text encoder and seed, which the heads of one ensemble share."""
        return self.request.name, self.request.text, self.request.seed

    @property
    def member(self) -> Member:
        """What it was trained on and with."""
        return member_of(self)

    @property
    def best(self) -> float:
        """RSUM on val of the epoch that was kept. Only for a head with a history."""
        return max(row["RSUM"] for row in self.history)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """A row for each training step, or for the means of `averaged` steps, as in steps.csv;
        empty without a file.
        """
        import pandas as pd

        file = self.folder / "steps.csv"
        with refusing(ValueError, f"{file}: not readable; train the head again, or move it away"):
            if not file.exists():
                return pd.DataFrame()
            return pd.DataFrame({"averaged": 1} | dict(pd.read_csv(file)))

    @cached_property
    def parameters(self) -> int:
        """How many parameters its network has."""
        from safetensors import safe_open

        with safe_open(self.folder / BEST, "numpy") as file:
            return sum(prod(file.get_slice(key).get_shape()) for key in file.keys())  # noqa: SIM118

    def tensors(self, part: str) -> dict[str, Tensor]:
        """Read the parameters of one part of its network, such as `image_pooling`, by their names
        in the part.
        """
        from pipeline.make.training.checkpoint import load_tensors

        tensors, _ = load_tensors(self.folder / BEST)
        of_part = {}
        for name, value in tensors.items():
            if name.startswith(f"{part}."):
                of_part[name.removeprefix(f"{part}.")] = value
        return of_part

    def setting(self, name: str) -> Mapping[str, Any]:
        """A pooling or the objective of its recipe."""
        value: Mapping[str, Any] = self.request.settings[name]
        return value

    def settings_key(self, *ignored: str) -> str:
        """A key that is equal for heads which differ in nothing but their seed and some settings of
        the recipe.
        """
        settings = {
            key: value for key, value in self.request.settings.items() if key not in ignored
        }
        data = (self.dataset, self.manifest, self.facts.store)
        key = [settings, *data, self.request.feature, self.request.text]
        return json.dumps(key, sort_keys=True)


def one_per_seed(heads: Iterable[TrainedHead]) -> list[TrainedHead]:
    """The first head of each seed: the same settings under two names are one run."""
    first: dict[int, TrainedHead] = {}
    for head in heads:
        first.setdefault(head.request.seed, head)
    return [first[seed] for seed in sorted(first)]


def read_heads(
    folder: Path,
    needed: Collection[str] | None = None,
    skipped: Callable[[str], object] = lambda why: None,
) -> tuple[TrainedHead, ...]:
    """Read the finished heads in a folder, in the order of `FEATURES`, then by name; not those
    still training.

    Those named in `needed` (None for all) must be readable; `skipped` is called with the reason for
    any other.
    """
    heads = []
    for place in TrainedHead.folders(folder):
        try:
            heads.append(TrainedHead.open(place))
        except InputError as error:
            if needed is None or place.name in needed:
                raise
            skipped(str(error))
    order = list(FEATURES)
    finished = [head for head in heads if head.record.finished]
    finished.sort(key=lambda head: (order.index(head.request.feature), head.name))
    return tuple(finished)

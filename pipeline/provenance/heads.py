"""Finished heads as tables, figures and the report page show them: their settings, and the history of training."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.parts.errors import InputError, refusing
from pipeline.settings.features import FEATURES
from pipeline.systems.scores.made import Member
from pipeline.systems.scores.of_head import member_of
from pipeline.training.artefact import BEST, HeadArtefact

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor


class TrainedHead(HeadArtefact):
    """One finished head."""

    @cached_property
    def history(self) -> list[Mapping[str, float]]:
        """A row for each epoch, as in history.csv; [] for a published checkpoint."""
        import pandas as pd

        file = self.folder / "history.csv"
        with refusing((KeyError, ValueError), f"{file}: not readable; train the head again"):
            rows: list[Mapping[str, float]] = pd.read_csv(file).to_dict("records") if file.exists() else []  # type: ignore[assignment]
            if self.feature not in FEATURES or not all({"epoch", "RSUM"} <= row.keys() for row in rows):
                raise KeyError("feature or history")
        return rows

    @property
    def recipe(self) -> str:
        """The name of its training recipe."""
        return self.request.name

    @property
    def feature(self) -> str:
        """Its visual feature, a name in `FEATURES`."""
        return self.request.feature

    @property
    def text(self) -> str:
        """Its text encoder."""
        return self.request.text

    @property
    def seed(self) -> int:
        """The seed of its training."""
        return self.request.seed

    @property
    def run_key(self) -> tuple[str, str, int]:
        """Recipe, text encoder and seed, which the heads of one ensemble share."""
        return self.recipe, self.text, self.seed

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
        """A row for each training step, or for the means of `averaged` steps, as in steps.csv; empty without a file."""
        import pandas as pd

        file = self.folder / "steps.csv"
        with refusing(ValueError, f"{file}: not readable; train the head again, or move it away"):
            return pd.DataFrame({"averaged": 1} | dict(pd.read_csv(file))) if file.exists() else pd.DataFrame()

    @cached_property
    def parameters(self) -> int:
        """How many parameters its network has."""
        from safetensors import safe_open

        with safe_open(self.folder / BEST, "numpy") as file:
            return sum(prod(file.get_slice(key).get_shape()) for key in file.keys())  # noqa: SIM118

    def tensors(self, part: str) -> dict[str, Tensor]:
        """Read the parameters of one part of its network, such as `image_pooling`, by their names in the part."""
        from pipeline.training.checkpoint import load_tensors

        tensors, _ = load_tensors(self.folder / BEST)
        return {name.removeprefix(f"{part}."): value for name, value in tensors.items() if name.startswith(f"{part}.")}

    def setting(self, name: str) -> Mapping[str, Any]:
        """A pooling or the objective of its recipe."""
        value: Mapping[str, Any] = self.request.settings[name]
        return value

    def settings_key(self, *ignored: str) -> str:
        """A key that is equal for heads which differ in nothing but their seed and some settings of the recipe."""
        settings = {key: value for key, value in self.request.settings.items() if key not in ignored}
        return json.dumps([settings, self.dataset, self.manifest, self.facts.store, self.feature, self.text],
                          sort_keys=True)


def one_per_seed(heads: Iterable[TrainedHead]) -> list[TrainedHead]:
    """The first head of each seed: the same settings under two names are one run."""
    first: dict[int, TrainedHead] = {}
    for head in heads:
        first.setdefault(head.seed, head)
    return [first[seed] for seed in sorted(first)]


def read_heads(folder: Path, needed: Collection[str] | None = None,
               skipped: Callable[[str], object] = lambda why: None) -> tuple[TrainedHead, ...]:
    """Read the finished heads in a folder, in the order of `FEATURES`, then by name; not those still training.

    Those named in `needed` (None for all) must be readable; `skipped` is called with the reason for any other.
    """
    heads = []
    for place in TrainedHead.folders(folder):
        try:
            head = TrainedHead.open(place, "history.csv", "steps.csv")
            _ = head.history
            heads.append(head)
        except InputError as error:
            if needed is None or place.name in needed:
                raise
            skipped(str(error))
    finished = [head for head in heads if head.record.finished]
    return tuple(sorted(finished, key=lambda head: (list(FEATURES).index(head.feature), head.name)))

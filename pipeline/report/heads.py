"""Trained heads: their settings, and the history of their training."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.files.weights import UNTRAINED
from pipeline.parts.errors import InputError, refusing
from pipeline.settings.features import FEATURES
from pipeline.systems.scores.made import Member
from pipeline.training.checkpoint import read_description

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TrainedHead:
    """One finished head.

    Attributes:
        folder: Its folder.
        description: The content of head.json.
        history: One row for each epoch, as in history.csv; () for a published checkpoint, which was not trained here.
        recipe: Its training recipe.
        feature: Its visual feature, a name in `FEATURES`.
        text: Its text encoder.
        seed: The seed of its training.
    """

    folder: Path
    description: Mapping[str, Any]
    history: tuple[Mapping[str, float], ...]
    recipe: str
    feature: str
    text: str
    seed: int

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def run_key(self) -> tuple[str, str, int]:
        """Recipe, text encoder and seed, which the heads of one ensemble share."""
        return self.recipe, self.text, self.seed

    @property
    def member(self) -> Member:
        """What it was trained on and with. Heads of earlier versions do not record their networks."""
        record = self.description
        features = record["features"]
        networks = record.get("networks", {"image": {} if features["trained"] else {"weights": UNTRAINED},
                                           "text": {} if record["text"] == "bigru" else {"kind": record["text"]}})
        return Member(
            head=self.name, feature=self.feature, features=features["recipe"], networks=networks,
            settings=record["recipe_settings"] | record["training"], store=record["store"], weights=features["weights"],
            vocabulary=record["vocabulary"])

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

        with safe_open(self.folder / "best.safetensors", "numpy") as file:
            return sum(prod(file.get_slice(key).get_shape()) for key in file.keys())  # noqa: SIM118

    def setting(self, name: str) -> Mapping[str, Any]:
        """A pooling or the objective of its recipe."""
        value: Mapping[str, Any] = self.description["recipe_settings"][name]
        return value

    def settings_key(self, *ignored: str) -> str:
        """A key that is equal for heads which differ in nothing but their seed and some settings of the recipe."""
        recipe = {key: value for key, value in self.description["recipe_settings"].items() if key not in ignored}
        rest = [self.description[key] for key in ("dataset", "manifest", "store", "feature", "text", "training")]
        return json.dumps([recipe, *rest], sort_keys=True)


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
    found = []
    for file in sorted(folder.glob("*/head.json")):
        try:
            found.append(_read(file.parent))
        except InputError as error:
            if needed is None or file.parent.name in needed:
                raise
            skipped(str(error))
    finished = [head for head in found
                if "origin" in head.description or len(head.history) >= head.description["training"]["epochs"]]
    return tuple(sorted(finished, key=lambda head: (list(FEATURES).index(head.feature), head.name)))


def _read(folder: Path) -> TrainedHead:
    import pandas as pd

    description, file = read_description(folder), folder / "history.csv"
    with refusing((KeyError, TypeError, ValueError), f"{folder}: not a head of this version; train it again"):
        rows = pd.read_csv(file).to_dict("records") if file.exists() else []
        recipe, feature, text = (str(description[key]) for key in ("recipe", "feature", "text"))
        head = TrainedHead(folder, description, tuple(rows), recipe, feature, text,  # type: ignore[arg-type]
                           int(description["seed"]))
        known = head.feature in FEATURES and all({"epoch", "RSUM"} <= row.keys() for row in rows)
        if not known or "epochs" not in description["training"] or "name" not in head.setting("objective"):
            raise KeyError("feature, epochs, objective or history")
        _ = head.member
        return head

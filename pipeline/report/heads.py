"""Trained heads as a report sees them: what they are, and how their training went."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import InputError
from pipeline.features import FEATURES
from pipeline.files.weights import UNTRAINED
from pipeline.provenance.head_record import Member
from pipeline.training.checkpoint import describe

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TrainedHead:
    """One finished head.

    name: its folder's name. description: head.json. history: a row an epoch, as in history.csv; empty for a head that
    was not trained here (a published checkpoint).
    """

    folder: Path
    description: Mapping[str, Any]
    history: tuple[Mapping[str, float], ...]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def recipe(self) -> str:
        return str(self.description["recipe"])

    @property
    def feature(self) -> str:
        return str(self.description["feature"])

    @property
    def text(self) -> str:
        return str(self.description["text"])

    @property
    def seed(self) -> int:
        return int(self.description["seed"])

    @property
    def system(self) -> tuple[str, str, int]:
        """Recipe, text encoder and seed: what the heads of one ensemble share."""
        return self.recipe, self.text, self.seed

    @property
    def member(self) -> Member:
        """What it was trained on and with; of an older head it is not known with which networks."""
        said = self.description
        by = said["features"]
        networks = said.get("networks", {"image": {} if by["trained"] else {"weights": UNTRAINED},
                                         "text": {} if said["text"] == "bigru" else {"kind": said["text"]}})
        return Member(self.name, self.feature, str(by["recipe"]), networks["image"], networks["text"],
                      said["recipe_settings"] | said["training"], said["store"], by["weights"], said["vocabulary"])

    @property
    def best(self) -> float:
        """RSUM on val of the epoch that was kept. Not for a head that was not trained here."""
        return max(row["rsum"] for row in self.history)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """A row a training step, as in steps.csv; empty where there is none. Raises InputError if it cannot be read."""
        import pandas as pd

        file = self.folder / "steps.csv"
        try:
            return pd.read_csv(file) if file.exists() else pd.DataFrame()
        except ValueError:
            raise InputError(f"{file}: not readable; train the head again, or move it away") from None

    def setting(self, name: str) -> Mapping[str, Any]:
        """A pooling or the objective of its recipe: {name, and its options}."""
        value: Mapping[str, Any] = self.description["recipe_settings"][name]
        return value

    def alike(self, *but: str) -> str:
        """A key that heads share if they differ in nothing but their seed and the recipe's settings `but`."""
        recipe = {key: value for key, value in self.description["recipe_settings"].items() if key not in but}
        rest = [self.description[key] for key in ("dataset", "manifest", "store", "feature", "text", "training")]
        return json.dumps([recipe, *rest], sort_keys=True)


def one_a_seed(heads: Iterable[TrainedHead]) -> list[TrainedHead]:
    """The first head of each seed, by seed: the same settings under two names are not two runs."""
    first: dict[int, TrainedHead] = {}
    for head in heads:
        first.setdefault(head.seed, head)
    return [first[seed] for seed in sorted(first)]


def read_heads(folder: Path, needed: Collection[str] | None = None,
               skipped: Callable[[str], object] = lambda why: None) -> tuple[TrainedHead, ...]:
    """The finished heads in a folder of heads, regions first, by name; none where there is no such folder.

    A head that is still training is left out. Raises InputError for one that cannot be read, if it is among those
    `needed`, by name, or None are named; of others `skipped` is told why.
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

    description, file = describe(folder), folder / "history.csv"
    try:
        rows = pd.read_csv(file).to_dict("records") if file.exists() else []
        head = TrainedHead(folder, description, tuple(rows))  # type: ignore[arg-type]
        known = head.feature in FEATURES and all({"epoch", "rsum"} <= row.keys() for row in rows)
        if not known or "epochs" not in description["training"] or "name" not in head.setting("objective"):
            raise KeyError("what a head says of itself")
        _ = head.system, head.member
        return head
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{folder}: not a head of this version; train it again, or move it away") from None

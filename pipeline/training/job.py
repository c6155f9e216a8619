"""One head to train, and its folder."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.manifest import Manifest
from pipeline.settings import Recipe, Training
from pipeline.store import FeatureStore, provenance
from pipeline.text.vocabulary import Vocabulary
from pipeline.training import checkpoint
from pipeline.training.processes import Alone, Processes

MACHINE = {"device", "pieces", "processes"}
"""Settings that say where a head is trained; what it is does not depend on them, but for rounding."""


@dataclass(frozen=True)
class Job:
    """One head to train: what from, how, and where it goes."""

    manifest: Manifest
    store: FeatureStore
    feature: str
    text: str
    recipe_name: str
    recipe: Recipe
    training: Training
    seed: int
    folder: Path
    if_changed: str = "refuse"
    processes: Processes = field(default_factory=Alone)

    def description(self, vocabulary: Vocabulary) -> dict[str, Any]:
        """head.json: all that the head depends on."""
        return {"dataset": self.manifest.dataset, "feature": self.feature, "text": self.text,
                "recipe": self.recipe_name, "recipe_settings": self.recipe.model_dump(),
                "training": self.training.model_dump(exclude=MACHINE), "seed": self.seed,
                "manifest": self.manifest.digest, "store": self.store.identity, "features": provenance(self.store),
                "vocabulary": vocabulary.digest, "width": self.store.layout.dimension}

    def differs(self, vocabulary: Vocabulary) -> list[str]:
        """In what the head that the folder holds is another one; nothing where it holds none."""
        if not (self.folder / "head.json").exists():
            return []
        there, description = checkpoint.describe(self.folder), self.description(vocabulary)
        return [key for key in description if there.get(key) != description[key]]

    def check(self, vocabulary: Vocabulary) -> None:
        """Raises InputError where the folder holds another head and if_changed is "refuse"."""
        differs = self.differs(vocabulary)
        if differs and self.if_changed == "refuse":
            raise InputError(f"{self.folder}: holds a head that was trained otherwise ({', '.join(differs)}); choose "
                             "another --out, or --if-changed redo to replace it")

    def claim(self, vocabulary: Vocabulary) -> None:
        """Make the folder this head's, in place of another one that it holds."""
        if self.differs(vocabulary):
            for old in checkpoint.FILES:
                (self.folder / old).unlink(missing_ok=True)
        if (self.folder / "head.json").exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        checkpoint.write_text(self.folder / "vocabulary.json", vocabulary.to_json())
        machine = {"machine": self.training.model_dump(include=MACHINE)}
        checkpoint.write_text(self.folder / "head.json",
                              json.dumps(self.description(vocabulary) | machine, indent=1, ensure_ascii=False))

"""What a head is asked for, told without loading its network, its text or torch."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import InputError
from pipeline.files import asked, code
from pipeline.files.digest import digest, sha256
from pipeline.heads.pooling import POOLINGS
from pipeline.objectives import OBJECTIVES
from pipeline.settings import Recipe
from pipeline.store import ledger, read_header
from pipeline.text import TEXTS
from pipeline.training import checkpoint

if TYPE_CHECKING:
    from pipeline.settings import Training

ROOMS = ("pipeline.heads", "pipeline.objectives", "pipeline.text", "pipeline.training")
KEPT = ("best.safetensors", "last.safetensors", "history.csv", "steps.csv")


@dataclass(frozen=True)
class Request:
    """A head by its settings.

    Args:
        manifest: its file.
        store: the features.
        head: the dataset, feature, text, recipe and seed by name.
        recipe: its settings.
        training: its settings.
    """

    manifest: Path
    store: Path
    head: tuple[str, str, str, str, int]
    recipe: Recipe
    training: Training

    def as_json(self) -> dict[str, Any] | None:
        """All that the head depends on; None where only loading tells: a BERT, or a network trained from the images."""
        if self.head[2] != "bigru" or self.recipe.finetune or not self.manifest.is_file() or not self.store.exists():
            return None
        words = self.training.vocabulary
        if words is not None and not Path(words).is_file():
            return None
        return {"manifest": sha256(self.manifest), "store": features(self.store), "head": list(self.head),
                "recipe": self.recipe.model_dump(), "torch": version("torch"),
                "training": self.training.model_dump(exclude={"device", "processes"}),
                "vocabulary": words and sha256(Path(words))}

    def is_done(self, folder: Path) -> bool:
        """Whether a folder holds the finished head, trained for the same request by the same code."""
        if not all((folder / name).exists() for name in (asked.FILE, *KEPT)):
            return False
        request = self.as_json()
        return request is not None and asked.is_done(folder, request) \
            and not code.changed(folder, made_by(self.head[2], self.recipe))

    def finished(self, folder: Path, asked_for: dict[str, Any] | None) -> None:
        """Record that a folder holds what was asked for: `as_json`, before the training began."""
        if asked_for is not None and (folder / "text" / "vocabulary.json").exists():
            asked.write(folder, asked_for, ["head.json", "text/vocabulary.json"])


def features(store: Path) -> dict[str, Any]:
    """What a head depends on of a feature store, read without zarr. Raises StoreError where it is none."""
    layout, fingerprint = read_header(store)
    entries = ledger.entries(store, layout)
    failed = [row for entry in entries for row in entry.failed]
    return {"bytes": digest([entry.checksums for entry in entries]), "fingerprint": digest(fingerprint),
            "dtype": layout.dtype, "failed": sorted(failed),
            "pending": ledger.pending(store, layout)}


def scores(folder: Path, manifest: Path, store: Path, split: str, batch_size: int) -> dict[str, Any] | None:
    """What a head's scores depend on; None where only loading the head tells, or it is not there."""
    described = checkpoint.describe(folder)
    try:
        if "finetuned" in described:
            return None
        roots = ("pipeline.training.embedding", "pipeline.retrieval.embeddings", "pipeline.scores.similarity_store")
        recipe = Recipe.model_validate(described["recipe_settings"])
        return {"head": sha256(folder / "head.json"), "best": sha256(folder / "best.safetensors"),
                "manifest": sha256(manifest), "store": features(store), "split": split, "batch_size": batch_size,
                "code": made_by(described["text"], recipe) | code.of(roots, (*ROOMS, "pipeline.retrieval",
                                                                             "pipeline.scores")),
                "torch": version("torch")}
    except (KeyError, ValueError, OSError, InputError):
        return None


def made_by(text: str, recipe: Recipe) -> dict[str, str]:
    """The modules that make a recipe's heads, with their digests."""
    poolings = [POOLINGS.module(side.name) for side in (recipe.image_pooling, recipe.text_pooling)]
    objective = OBJECTIVES.module(recipe.objective.name)
    return code.of(["pipeline.training.loop", TEXTS.module(text), *poolings, objective], ROOMS)


def said(folder: Path) -> str:
    """A finished head in words."""
    state = checkpoint.state(folder)
    return f"best epoch {state.best} of {state.epochs}, val RSUM {state.history[state.best]['rsum']:.1f}"

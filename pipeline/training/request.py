"""The request for a head, which can be compared with a finished one without loading its network, its text or torch."""

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pipeline import artefacts
from pipeline.evaluation.retrieval.top import INDEXES
from pipeline.features.store import ledger, read_header
from pipeline.files import record
from pipeline.files.digest import digest, sha256
from pipeline.heads import HEADS, objectives, pooling
from pipeline.parts.errors import InputError
from pipeline.parts.lazy import LookupTable
from pipeline.settings import Recipe, Training
from pipeline.text import TEXTS, TOKENIZERS
from pipeline.training import checkpoint

KEPT = ("best.safetensors", "last.safetensors", "history.csv", "steps.csv")


@dataclass(frozen=True)
class TrainingRequest:
    """What a head is made from: its inputs and settings."""

    manifest: Path  # the manifest's file
    store: Path  # the features
    head: tuple[str, str, str, str, int]  # names of data set, feature, text and recipe, and the seed
    recipe: Recipe  # the recipe
    training: Training  # the sizes

    def as_json(self) -> dict[str, Any] | None:
        """Collect all that the head depends on.

        Returns:
            JSON values; None if a file is missing, or if they are only known after loading: for BERT, a network trained
            from the images, or a head that depends on another one.
        """
        if self.head[2] != "bigru" or self.recipe.finetune or self.recipe.start or self.recipe.pairs.retriever:
            return None
        if not self.manifest.is_file() or not self.store.exists():
            return None
        words, vectors = self.training.vocabulary, self.training.word_vectors
        index = self.recipe.noise.index if self.recipe.noise else None
        if any(name is not None and not Path(name).is_file() for name in (words, vectors, index)):
            return None
        return {"manifest": sha256(self.manifest), "store": features(self.store), "head": list(self.head),
                "recipe": recorded(self.recipe), "torch": version("torch"),
                "training": self.training.recorded(exclude={"device", "processes"}),
                "vocabulary": words and sha256(Path(words)),
                **({"word_vectors": sha256(Path(vectors))} if vectors else {})}

    def is_done(self, folder: Path) -> bool:
        """Compare the request with a finished head.

        Args:
            folder: The head's folder.

        Returns:
            Whether it holds the finished head, trained for the same request by the same code.
        """
        if not all((folder / name).exists() for name in KEPT) or not record.is_asked(folder):
            return False
        request = self.as_json()
        return request is not None and record.is_done(folder, request) \
            and not record.changed(folder, made_by(self.head[2], self.recipe, self.training.tokenizer))

    def finished(self, folder: Path, asked_for: dict[str, Any] | None) -> None:
        """Record that a folder holds what was asked for.

        Args:
            folder: The head's folder.
            asked_for: The result of `as_json` before the training began.
        """
        if asked_for is not None and (folder / "text" / "vocabulary.json").exists():
            record.finish(folder, asked_for, checkpoint.OPENED)


def recorded(recipe: Recipe) -> dict[str, Any]:
    """Collect what is recorded of a recipe. The SHA-256 of an index of noisy pairs replaces its path."""
    found = recipe.recorded()
    if recipe.noise and recipe.noise.index is not None:
        index = Path(recipe.noise.index)
        if not index.is_file():
            raise InputError(f"{index}: no such file; the recipe's noise names it as its index")
        found["noise"]["index"] = sha256(index)
    return found


def features(store: Path) -> dict[str, Any]:
    """Collect what a head depends on of a feature store, without zarr."""
    layout, fingerprint = read_header(store)
    entries = ledger.entries(store, layout)
    failed = [row for entry in entries for row in entry.failed]
    return {"bytes": digest([entry.checksums for entry in entries]), "fingerprint": digest(fingerprint),
            "dtype": layout.dtype, "failed": sorted(failed),
            "pending": ledger.pending(store, layout)}


def made_by(text: str, recipe: Recipe, tokenizer: str | None = None) -> dict[str, int | str]:
    """Collect the versions of the parts that make a recipe's heads.

    Args:
        text: A key of `TEXTS`.
        recipe: The recipe.
        tokenizer: The setting `training.NAME.tokenizer`.

    Returns:
        As `artefacts.versions`: those of its parts, of its tasks, of another package's tokenizer and index, and of
        the loop that all share. Built-in tokenizers are part of the text encoder.
    """
    of_user: list[tuple[LookupTable[Any], str]] = []
    if tokenizer and not TOKENIZERS.is_built_in(tokenizer):
        of_user.append((TOKENIZERS, tokenizer))
    if not INDEXES.is_built_in(recipe.pairs.index):
        of_user.append((INDEXES, recipe.pairs.index))
    poolings = [(pooling.POOLINGS, side.name) for side in (recipe.image_pooling, recipe.text_pooling)]
    return artefacts.versions("training", *(f"training/{task}" for task in recipe.tasks), (TEXTS, text),
                           (HEADS, recipe.architecture.name), (objectives.OBJECTIVES, recipe.objective.name), *poolings,
                           *of_user)


def check_parts(recipe: Recipe, dimension: int) -> None:
    """Check that a recipe's poolings and objective can be built.

    Args:
        recipe: The recipe.
        dimension: d of the joint space.

    Raises:
        InputError: For a name or an option that is not known, or a value that is refused.
    """
    import torch

    with torch.device("meta"):  # takes no memory and draws nothing
        for side in (recipe.image_pooling, recipe.text_pooling):
            pooling.build(side.name, dimension, **side.options)
    objectives.build(recipe.objective.name, **recipe.objective.options)


def summary(folder: Path) -> str:
    """Summarise a finished head.

    Args:
        folder: Its folder.

    Returns:
        Best epoch, number of epochs and RSUM on val.
    """
    state = checkpoint.state(folder)
    return f"best epoch {state.best} of {state.epochs}, val RSUM {state.history[state.best]['RSUM']:.1f}"

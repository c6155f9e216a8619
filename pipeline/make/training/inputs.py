"""The artefacts that a head is made from, by their roles: manifest, features, text, start,
retriever.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from pipeline.foundation.artefacts import Reference
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.cache import ManifestCache
from pipeline.foundation.manifest.request import reference
from pipeline.foundation.settings import Training
from pipeline.make.features.store import FeatureStore, ledger, read_header
from pipeline.make.text import checkpoints
from pipeline.make.training.artefact import HeadArtefact
from pipeline.make.training.request import TrainRequest


def require(features: Path | None, text: str, training: Training) -> None:
    """Check that the store of features and the text encoder's checkpoint exist, without torch;
    None: no store is read.

    Raises:
        InputError: If one is missing.
    """
    if features is not None:
        read_header(features)
    checkpoints.require(text, training)


def references(
    manifest: Reference, feature: str, features: str, heads: Mapping[str, Path | None]
) -> dict[str, Reference]:
    """Compose the references to what every head is made from."""
    made_from = {
        "manifest": manifest,
        "features": Reference(kind="features", name=feature, identity=features),
    }
    for role, folder in heads.items():
        if folder is not None:
            made_from[role] = HeadArtefact.open(folder).require_finished().reference
    return made_from


def of_files(
    request: TrainRequest,
    dataset: str,
    manifest: Path,
    store: Path,
    heads: Mapping[str, Path | None],
) -> dict[str, Reference] | None:
    """Compose `TrainingJob.made_from` without loading what it refers to.

    None if it is only known after loading: for a pretrained text encoder, a network that is trained
    from the images, and where something is missing.
    """
    if request.text != "bigru" or request.recipe.finetune:
        return None
    if not manifest.is_file() or not store.exists():
        return None
    folders = [folder for folder in heads.values() if folder is not None]
    if not all(map(HeadArtefact.is_finished, folders)):
        return None

    def read() -> str:
        table = Manifest.load(manifest)
        opened = FeatureStore(store).require(table)
        rows = trained_rows(table, opened.done)
        return trained_on(opened, opened.content(rows))

    features = stored_features(ManifestCache(manifest), store, read)
    return references(reference(manifest, dataset), request.feature, features, heads)


def trained_rows(manifest: Manifest, done: np.ndarray) -> np.ndarray:
    """Find the images that training reads: rows of those of train and val with features, int64."""
    read = manifest.images["split"].isin(("train", "val")).to_numpy()
    return np.flatnonzero(read & done)


def trained_on(store: FeatureStore, content: str) -> str:
    """Digest what made features, and the bytes of those that training reads."""
    return digest([store.identity, content])


def stored_features(cache: ManifestCache, store: Path, read: Callable[[], str]) -> str:
    """Look up the digest of what training reads of stored features, which `read` computes."""
    return cache.digest(f"train and val of the features {whole(store)}", read)


def whole(store: Path) -> str:
    """Digest a whole store by its ledger."""
    layout, fingerprint = read_header(store)
    entries = []
    for entry in ledger.entries(store, layout):
        entries.append([entry.checksums, entry.sources, entry.failed])
    return digest([fingerprint, layout.dtype, ledger.pending(store, layout), entries])

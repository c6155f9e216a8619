"""Plain matrices, of another code base say, opened as similarity stores by a manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.files.digest import of_folder, sha256
from pipeline.manifest import Manifest
from pipeline.retrieval import as_similarity
from pipeline.scores.candidates import Columns, Pool
from pipeline.scores.similarity_store import SimilarityStore


def open_scores(path: Path, columns: Columns) -> SimilarityStore:
    """Open a similarity store, or a plain matrix as if it were one."""
    if Pool.says_its_columns(path) or not path.exists():
        return SimilarityStore.open(path).check()
    if columns.manifest is None:
        raise InputError(f"{path}: is a plain matrix; name the --manifest whose images and captions it is of")
    scores, known = as_similarity(path), Manifest.load(columns.manifest)
    caption_image, image_ids, caption_ids = columns.of(scores.shape)
    assert image_ids is not None
    assert caption_ids is not None
    made_from: dict[str, Any] = {
        "dataset": known.dataset, "split": columns.split or "test", "manifest": known.digest, "recipe": None,
        "text": None, "seed": None, "ensemble": None, "features": {}, "untrained": [], "members": [],
        "file": of_folder(path) if path.is_dir() else sha256(path)}
    matrix = scores.values  # type: ignore[union-attr]
    return SimilarityStore(path, (matrix,), image_ids, caption_ids, caption_image, made_from)

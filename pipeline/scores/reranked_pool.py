"""A system that was reranked among distractors, with the embeddings of these."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.errors import InputError
from pipeline.files.digest import digest
from pipeline.scores import contents, reranked_store
from pipeline.scores.candidates import Pool
from pipeline.scores.embedding_store import EmbeddingStore
from pipeline.scores.reranked_store import KEY
from pipeline.scores.similarity_store import SimilarityStore


def recorded(distractors: Sequence[EmbeddingStore]) -> list[dict[str, str]]:
    """Compose what is recorded of distractors."""
    return [{"dataset": each.made_from["dataset"], "seal": digest(each.made_from)} for each in distractors]


def open_enlarged(path: Path, distractors: Sequence[EmbeddingStore]) -> Pool:
    """Open a head's scores, or a reranked system's, with distractors."""
    own = EmbeddingStore.open(path)
    if KEY not in own.made_from:
        return Pool.of_enlarged(own, distractors)
    store, record = SimilarityStore.open(path), own.made_from[KEY]
    contents.require(path, store.made_from)
    if record["distractors"] != recorded(distractors):
        named = ", ".join(each["dataset"] for each in record["distractors"]) or "no distractors"
        raise InputError(f"{path}: was reranked among {named}; pass the same --distractors, or run `pipeline rerank` "
                         "again")
    assert store.retriever is not None
    pool = Pool.of_enlarged(EmbeddingStore.open(store.retriever.path), distractors)
    import zarr

    found = reranked_store.read(path, zarr.open_group(path, mode="r", zarr_format=3), pool.scores.shape)
    scores = reranked_store.source(pool.scores, found, pool.caption_image, record)
    return Pool(path.stem, scores, pool.caption_image, made_from=store.made_from, split=pool.split)

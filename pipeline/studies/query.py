"""One text query on this machine: retrieved alone, and with its best candidates reranked (Geigle et al., Table 3)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from pipeline import training
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.settings import Throughput
from pipeline.studies.throughput import interleaved
from pipeline.systems import reranking
from pipeline.systems.reranking.base import PairSource
from pipeline.systems.scores.nearest import nearest
from pipeline.systems.scores.system import System


@torch.inference_mode()
def measure(source: PairSource, retriever: str, scorer: str, settings: Throughput,
            progress: Callable[[str], object] = lambda what: None) -> dict[str, Any]:
    """Time a caption's way to its candidates, without and with the scorer. Models are open, vectors are in memory.

    The caption is the one of median length. The scorer reads its candidates' features from their store, as ever.

    JSON values. retriever, scorer; images: how many are searched; k; seconds: `retrieve`, and `both` for retrieving
    and reranking; ratio: both / retrieve.
    """
    head, _ = training.open_by_name(source.paths, source.dataset, retriever, source.device)
    store = System.open_vectors(source.paths.similarity(source.dataset, retriever, source.split))
    if store.checkpoints != [head.checkpoint]:
        raise InputError(f"{store.path}: is of another head than {retriever} is now; run `pipeline score` again")
    vectors, k = np.array(store.vectors("image")), settings.reranked
    if k > len(vectors):
        raise InputError(f"{store.path}: has {len(vectors)} images, and throughput.reranked is {k}; rerank fewer")
    manifest = Manifest.load(source.paths.manifest(source.dataset))
    table = manifest.table.set_index("caption_id").loc[store.caption_ids, "caption"]
    caption = table.loc[table.str.len().sort_values(kind="stable").index[len(table) // 2]]
    asked = np.full(k, table.index[table == caption][0], np.int64)
    opened = reranking.build(*reranking.resolve(scorer, source), source)

    def retrieve() -> np.ndarray:
        query = training.embed_captions(head.model, [caption], head.text, 1)
        return nearest(query, vectors, k)[0][0]

    taken = interleaved({f"a query by {retriever}": retrieve,
                         f"reranked by {scorer}": lambda: opened.score(store.image_ids[retrieve()], asked)},
                        source.device, settings.repeats, settings.seconds, progress)
    alone, both = taken.values()
    return {"retriever": retriever, "scorer": scorer, "images": len(vectors), "k": k,
            "retrieve": alone, "both": both, "ratio": both / alone}

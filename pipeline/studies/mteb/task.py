"""A split of one's own photographs and captions as a retrieval task of mteb."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import datasets
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata

if TYPE_CHECKING:
    from pipeline.evaluation.retrieval.similarity import Direction
    from pipeline.manifest import Manifest


def of_split(manifest: Manifest, split: str, direction: Direction) -> AbsTaskRetrieval:
    """Make a task of a split. Every caption stands by itself: equal captions are not merged, as mteb does for COCO.

    Args:
        manifest: The images, whose files are read.
        split: The split.
        direction: "i2t" ranks captions for images, "t2i" images for captions.

    Returns:
        The task. Its `hit_rate_at_k` is R@K / 100, where no two candidates are equally similar.
    """
    part = manifest.split(split)
    files = manifest.images["file"].to_numpy()[part.store_rows]
    images = datasets.Dataset.from_dict({
        "id": [f"image-{number}" for number in range(len(files))],
        "image": [str(manifest.images_folder / file) for file in files]}).cast_column("image", datasets.Image())
    captions = datasets.Dataset.from_dict({"id": [f"caption-{number}" for number in range(len(part.captions))],
                                           "text": list(part.captions)})
    relevant: dict[str, dict[str, int]] = {}
    for caption, image in enumerate(part.caption_image):
        pair = (f"image-{image}", f"caption-{caption}")
        query, found = pair if direction == "i2t" else pair[::-1]
        relevant.setdefault(query, {})[found] = 1
    queries, corpus = (images, captions) if direction == "i2t" else (captions, images)

    class OfSplit(AbsTaskRetrieval):
        metadata = _metadata(manifest.dataset, split, direction)

        def load_data(self, num_proc: int | None = None, **asked: Any) -> None:
            self.dataset = {"default": {split: {"corpus": corpus, "queries": queries, "relevant_docs": relevant,
                                                "top_ranked": None}}}
            self.data_loaded = True

    return OfSplit()


def _metadata(dataset: str, split: str, direction: Direction) -> TaskMetadata:
    return TaskMetadata(
        name=f"{dataset}-{split}-{direction}", description=f"Split {split} of {dataset}.", reference=None,
        dataset={"path": dataset, "revision": "local"}, type="Any2AnyRetrieval", category=direction,
        eval_splits=[split], eval_langs=["eng-Latn"], main_score="hit_rate_at_1", date=None, domains=None,
        task_subtypes=None, license=None, annotations_creators=None, dialect=None, modalities=["text", "image"],
        sample_creation=None, bibtex_citation=None)

"""Measure a head on val, to select its best epoch."""

from statistics import fmean

import numpy as np

from pipeline.evaluation import retrieval
from pipeline.evaluation.statistics.languages import divide
from pipeline.heads.base import HeadNetwork, Interaction
from pipeline.heads.cross import CrossEncoder
from pipeline.manifest import Split
from pipeline.settings import Recipe
from pipeline.text import Text
from pipeline.text.base import encode
from pipeline.training.optimizer import TrainingPrecision
from pipeline.training.scoring import Scores, all_pairs, embed, score_all_by_cross
from pipeline.training.source import ImageSource

Row = dict[str, float]


def measured(model: HeadNetwork, recipe: Recipe, source: ImageSource, val: Split, text: Text, batch_size: int,
             precision: TrainingPrecision) -> Row:
    """Measure what the recipe trains: embeddings on all of val, pairs on some images with one caption each."""
    rows: dict[str, Row] = {}
    if isinstance(model, Interaction):
        rows["late"] = of_scores(all_pairs(model, source, val, text, batch_size), val)
    elif "emb" in recipe.tasks:
        rows["emb"] = of_scores(retrieval.Embeddings(*embed(model, source, val, text, batch_size)), val)
    if "ce" in recipe.tasks:
        assert isinstance(model, CrossEncoder)
        rows["ce"] = of_pairs(model, source, one_caption_each(val, recipe.pairs.val_images), text, batch_size,
                              precision)
    if len(rows) == 1:
        return next(iter(rows.values()))
    both = {name: fmean(row[name] for row in rows.values()) for name in rows["emb"]}
    return both | {f"{task}_rsum": row["rsum"] for task, row in rows.items()}


def of_scores(similarity: retrieval.Embeddings | Scores, val: Split) -> Row:
    """Measure similarities; with captions in several languages the means over languages."""
    if val.languages is None:
        return _row(retrieval.evaluate(similarity, val.caption_image))
    source = retrieval.as_similarity(similarity)
    parts = divide(val.caption_image, source.shape, val.languages).values()
    rows = [_row(retrieval.evaluate(retrieval.select(source, images, captions),
                                    np.searchsorted(images, val.caption_image[captions])))
            for images, captions in parts]
    return {name: fmean(row[name] for row in rows) for name in rows[0]}


def of_pairs(model: CrossEncoder, source: ImageSource, val: Split, text: Text, batch_size: int,
             precision: TrainingPrecision) -> Row:
    """Measure scores of all pairs of a split."""
    scores = score_all_by_cross(model, source, val.store_rows, encode(text, val.captions), batch_size,
                                precision.autocast)
    return _row(retrieval.evaluate(scores, val.caption_image))


def one_caption_each(val: Split, images: int) -> Split:
    """Take the first images of a split with their first caption each (Geigle et al.'s released code)."""
    _, first = np.unique(val.caption_image, return_index=True)
    part = Split(val.name, val.store_rows, val.image_ids, val.caption_ids[first], val.caption_image[first],
                 [val.captions[caption] for caption in first])
    return part.only(np.arange(len(val.image_ids)) < images)


def _row(metrics: retrieval.Metrics) -> Row:
    numbers = metrics.as_dict()
    recalls = {f"{way}_{k}": numbers[way][k] for way in ("i2t", "t2i") for k in ("r1", "r5", "r10")}
    return {**recalls, "rsum": numbers["rsum"]}

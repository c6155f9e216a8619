"""The course of a head's training: rounds of its recipe's tasks, and their measurement on val."""

from statistics import fmean

import numpy as np

from pipeline.evaluation.metrics import evaluate
from pipeline.evaluation.retrieval import Embeddings
from pipeline.heads.base import Interaction
from pipeline.heads.cross import CrossEncoder
from pipeline.manifest import Split
from pipeline.training import checkpoint, scoring
from pipeline.training.artefact import BEST
from pipeline.training.course import Course, Row, of_scores, row
from pipeline.training.tasks import Rounds, Tasks
from pipeline.training.training_job import TrainingData, TrainingJob


class HeadCourse(Course):
    """A head's network, and the rounds of its tasks."""

    def __init__(self, job: TrainingJob, data: TrainingData) -> None:
        self.job, self.data = job, data
        device = job.processes.device(job.training.device)
        self.model = job.network(data.text, device)
        if job.start is not None:  # a checkpoint of its own replaces these weights
            checkpoint.fill(
                self.model,
                job.start / BEST,
                f"{job.start}: has another architecture than the head that shall start from it; give both "
                "recipes the same architecture",
            )
        self.step = tasks = Tasks.of(job, self.model, device)
        self.update, self.objective = tasks.update, tasks.objective
        self.batches = self.rounds = Rounds(job, data.train, data.text, data.keep_first)
        self.batch_size = self.rounds.pairs.batch_size

    def start_epoch(self, number: int) -> None:
        """Find hard negatives, and freeze the network that makes the features in its first
        epochs.
        """
        self.rounds.find_nearest(self.model, self.update.precision)
        if self.model.backbone is not None:
            self.model.backbone.requires_grad_(number >= self.job.recipe.frozen_epochs)

    def measured(self) -> Row:
        """Measure embeddings on all of val, and pairs on some of its images, see
        `Course.measured`.
        """
        job, model, val, text = self.job, self.model, self.data.val, self.data.text
        source, batch_size = job.source, max(1, job.training.batch_size // job.training.pieces)
        rows: dict[str, Row] = {}
        if isinstance(model, Interaction):
            rows["late"] = of_scores(scoring.all_pairs(model, source, val, text, batch_size), val)
        elif "emb" in job.recipe.tasks:
            rows["emb"] = of_scores(
                Embeddings(*scoring.embed(model, source, val, text, batch_size)), val
            )
        if "ce" in job.recipe.tasks:
            assert isinstance(model, CrossEncoder)
            # The first images with their first caption each (Geigle et al.'s released code).
            _, first = np.unique(val.caption_image, return_index=True)
            part = Split(
                val.name,
                val.store_rows,
                val.image_ids,
                val.caption_ids[first],
                val.caption_image[first],
                val.captions[first],
            )
            part = part.only(np.arange(len(val.image_ids)) < job.recipe.pairs.val_images)
            captions = text.captions(part.captions, part.caption_ids)
            scores = scoring.score_all_by_cross(
                model, source, part.store_rows, captions, batch_size, self.update.precision.autocast
            )
            rows["ce"] = row(evaluate(scores, part.caption_image))
        if len(rows) == 1:
            return next(iter(rows.values()))
        both = {name: fmean(each[name] for each in rows.values()) for name in rows["emb"]}
        return both | {f"{task} RSUM": each["RSUM"] for task, each in rows.items()}

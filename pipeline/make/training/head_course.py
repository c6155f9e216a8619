"""The course of a head's training: rounds of its recipe's tasks, and their measurement on val."""

import numpy as np

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import Embeddings
from pipeline.foundation.manifest import Split
from pipeline.make.heads.base import Interaction
from pipeline.make.heads.cross import CrossEncoder
from pipeline.make.training import checkpoint, scoring
from pipeline.make.training.artefact import BEST
from pipeline.make.training.course import Course, Row, means, of_scores, row
from pipeline.make.training.tasks import Rounds, Tasks
from pipeline.make.training.training_job import TrainingData, TrainingJob


class HeadCourse(Course):
    """A head's network, and the rounds of its tasks."""

    def __init__(self, job: TrainingJob, data: TrainingData) -> None:
        self.job = job
        self.data = data
        device = job.processes.device(job.training.device)
        self.model = job.network(data.text, device)
        if job.start is not None:  # a checkpoint of its own replaces these weights
            checkpoint.fill(
                self.model,
                job.start / BEST,
                f"{job.start}: has another architecture than the head that shall start from it; give both "
                "recipes the same architecture",
            )
        tasks = Tasks.of(job, self.model, device)
        self.step = tasks
        self.update = tasks.update
        self.objective = tasks.objective
        self.rounds = Rounds(job, data.train, data.text, data.keep_first)
        self.batches = self.rounds
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
        job = self.job
        model = self.model
        val = self.data.val
        text = self.data.text
        batch_size = max(1, job.training.batch_size // job.training.pieces)
        rows: dict[str, Row] = {}
        if isinstance(model, Interaction):
            scores = scoring.all_pairs(model, job.source, val, text, batch_size)
            rows["late"] = of_scores(scores, val)
        elif "emb" in job.recipe.tasks:
            images, captions = scoring.embed(model, job.source, val, text, batch_size)
            rows["emb"] = of_scores(Embeddings(images, captions), val)
        if "ce" in job.recipe.tasks:
            rows["ce"] = self._measured_pairs(batch_size)
        if len(rows) == 1:
            return next(iter(rows.values()))
        both = means(rows.values())
        for task, of_task in rows.items():
            both[f"{task} RSUM"] = of_task["RSUM"]
        return both

    def _measured_pairs(self, batch_size: int) -> Row:
        """Measure the scores of some of val's pairs: of the first images with their first caption
        each (Geigle et al.'s released code).
        """
        model = self.model
        val = self.data.val
        assert isinstance(model, CrossEncoder)
        _, first = np.unique(val.caption_image, return_index=True)
        part = Split(
            val.name,
            val.store_rows,
            val.image_ids,
            val.caption_ids[first],
            val.caption_image[first],
            val.captions[first],
        )
        part = part.only(np.arange(len(val.image_ids)) < self.job.recipe.pairs.val_images)
        captions = self.data.text.captions(part.captions, part.caption_ids)
        scores = scoring.score_all_by_cross(
            model,
            self.job.source,
            part.store_rows,
            captions,
            batch_size,
            self.update.precision.autocast,
        )
        return row(evaluate(scores, part.caption_image))

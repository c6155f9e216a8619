"""The course of fine-tuning: batches of photographs and captions, a step, and the measurement on
val.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch

from pipeline.foundation.evaluation.retrieval import Embeddings
from pipeline.foundation.evaluation.retrieval.blocks import Ids
from pipeline.make.dual_encoders.embedding import embed_part, prepared
from pipeline.make.dual_encoders.tuning.job import TuningData, TuningJob
from pipeline.make.dual_encoders.tuning.network import Listed, TunedNetwork, objective_of
from pipeline.make.training.batches import Batch, Batches, Drawing
from pipeline.make.training.course import Course, Row, of_scores
from pipeline.make.training.optimizer import Update
from pipeline.make.training.step import TrainingStep


class PhotographBatches(Batches[Batch]):
    """Photographs as an encoder prepares them, and captions as in the manifest."""

    def __init__(self, job: TuningJob, data: TuningData) -> None:
        recipe = job.recipe
        processes = job.processes
        drawing = Drawing(
            recipe.batch_size,
            job.seed,
            (processes.rank, processes.count),
            recipe.sampling,
            recipe.steps and recipe.steps // recipe.epochs,
        )
        super().__init__(data.train, drawing)
        self.encoder = data.encoder
        self.files = job.manifest.gallery(job.images, data.train.store_rows.tolist())

    def batch(self, epoch: int, step: int, captions: Ids) -> Batch:
        """Read and prepare this process's photographs, see `Batches.batch`."""
        split = self.split
        own = captions[self.own]
        images = split.caption_image[own]
        files = [self.files[image] for image in images]
        with ThreadPoolExecutor() as threads:  # decoding and resizing let go of Python's lock
            images_prepared = list(threads.map(partial(prepared, self.encoder), files))
        pixels = [pixels_of_image for pixels_of_image, _ in images_prepared]
        image_ids = torch.from_numpy(split.image_ids[images])
        caption_ids = torch.from_numpy(split.caption_ids[own])
        return Batch(
            Listed.all_of(pixels, image_ids),
            Listed.all_of(split.captions[own].tolist(), caption_ids),
        )


class TuningCourse(Course):
    """A dual encoder, and steps as those of heads that embed: all other pairs of a batch are
    negatives.
    """

    def __init__(self, job: TuningJob, data: TuningData) -> None:
        self.job = job
        self.data = data
        recipe = job.recipe
        self.model = TunedNetwork(data.encoder, recipe)
        self.objective = objective_of(self.model.network, recipe)
        self.update = Update.of(
            self.model, recipe, recipe, job.processes, data.encoder.usage.device
        )
        self.step: TrainingStep = TrainingStep(
            self.model, self.update, self.objective, recipe.same_image_negatives
        )
        self.batches = PhotographBatches(job, data)
        self.batch_size = self.batches.batch_size

    def measured(self) -> Row:
        """Measure val as it would be embedded, see `Course.measured`."""
        job = self.job
        val = self.data.val
        self.model.eval()
        files = job.manifest.gallery(job.images, val.store_rows.tolist())
        batch_size = max(1, job.recipe.batch_size // job.recipe.pieces)
        piece = embed_part(self.data.encoder, files, val.captions.tolist(), batch_size)
        return of_scores(Embeddings(piece.images, piece.captions), val)

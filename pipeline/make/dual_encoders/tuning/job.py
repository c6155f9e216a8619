"""What is trained on: a dual encoder and a data set, and the folder that holds the weights."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BeforeValidator, PlainSerializer

from pipeline.foundation import artefacts
from pipeline.foundation.artefacts import Draft, Reference, Request, Versions
from pipeline.foundation.artefacts.making import IfChanged
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest import Manifest, Split, photographs
from pipeline.foundation.settings import FineTuning
from pipeline.make import dual_encoders
from pipeline.make.dual_encoders.base import DualEncoder, Usage
from pipeline.make.dual_encoders.tuning import TUNINGS
from pipeline.make.heads.objectives import OBJECTIVES
from pipeline.make.training import sampling
from pipeline.make.training.job import Job
from pipeline.make.training.processes import Processes

# Settings that are no part of a request: where it is trained, which changes only rounding.
WHERE: dict[str, Any] = {"device": "cpu", "pieces": 1, "processes": 1}


class TuneRequest(Request):
    """A dual encoder to train on. encoder: its kind, a key of `DUAL_ENCODERS`. prompt: see
    `Usage`.
    """

    kind: ClassVar[str] = "tuned encoder"
    encoder: str
    name: str
    seed: int
    tuning: Annotated[
        FineTuning,
        BeforeValidator(lambda value: WHERE | value if isinstance(value, dict) else value),
        PlainSerializer(lambda tuning: tuning.recorded(exclude=WHERE)),
    ]
    prompt: str

    @classmethod
    def of(cls, model: str, name: str, seed: int, tuning: FineTuning, prompt: str = "own") -> Self:
        """Compose a request. model: KIND:PLACE of the base; name: of the section of settings."""
        return cls(
            encoder=model.partition(":")[0], name=name, seed=seed, tuning=tuning, prompt=prompt
        )

    def versions(self) -> Versions:
        """Collect the versions of the loop, of the encoder's class, and of what is trained by which
        objective.
        """
        return artefacts.versions(
            "training",
            "training/emb",
            "images",
            (dual_encoders.DUAL_ENCODERS, self.encoder),
            (TUNINGS, self.tuning.weights.name),
            *((OBJECTIVES, name) for name in self.tuning.objective.parts),
        )


@dataclass(frozen=True)
class TuningData:
    """What a job reads, open."""

    encoder: DualEncoder  # with the base's weights
    train: Split  # the pairs that it learns from
    val: Split  # those that select the best epoch
    made_from: Mapping[str, Reference]  # role -> artefact

    def notes(self) -> list[str]:
        """Say how many captions of val the encoder cuts."""
        captions = self.val.captions.tolist()
        cut = sum(self.encoder.is_cut(captions))
        return self.encoder.notes_on_cut(cut, len(captions), " of val")


@dataclass(frozen=True)
class TuningJob(Job[TuningData]):
    """A dual encoder to train on: with what, how, and where its files go."""

    model: str  # KIND:PLACE of the base
    manifest: Manifest  # images and captions
    images: Path  # where the images' files are
    name: str  # the name of the section of settings
    recipe: FineTuning  # how it is trained
    seed: int  # the seed of all random draws
    folder: Path  # where its files go
    if_changed: IfChanged = "refuse"  # whether another one in the folder is refused or replaced
    processes: Processes = field(default_factory=Processes)  # the processes that share a batch
    prompt: str = "own"  # see `Usage`
    # The same as `recipe`: for how long it is trained, and where.
    training: FineTuning = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "training", self.recipe)

    @cached_property
    def request(self) -> TuneRequest:
        """What is asked for."""
        return TuneRequest.of(self.model, self.name, self.seed, self.recipe, self.prompt)

    def open(self) -> TuningData:
        """Open encoder and splits, see `Job.open`."""
        usage = Usage(self.prompt, device=self.processes.device(self.recipe.device))
        encoder = dual_encoders.load(self.model, usage)
        train, val = (
            self.manifest.split(name).in_languages(self.recipe.languages).of_pairs()
            for name in ("train", "val")
        )
        train = sampling.subset(train, self.recipe.images, self.recipe.subset_seed)
        sampling.require_languages(train, self.recipe.sampling)
        base = Reference(
            kind="encoder", name=self.model, identity=identity(self.request.encoder, encoder)
        )
        rows = np.sort(np.concatenate([train.store_rows, val.store_rows]))
        return TuningData(
            encoder,
            train,
            val,
            {
                "manifest": self.manifest.reference,
                "base": base,
                "photographs": photographs.reference(self.manifest, rows, self.images),
            },
        )

    def begin(self, draft: Draft, data: TuningData) -> None:
        """Record where the base is, and what it was trained on with this job."""
        draft.facts = {"base": self.model, "trained_on": self.manifest.dataset}
        draft.save()


def identity(kind: str, encoder: DualEncoder) -> str:
    """Digest a base's kind and files."""
    return digest({"kind": kind, "files": dict(encoder.files)})

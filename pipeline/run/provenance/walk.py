"""The artefacts behind one: a walk over the `made_from` of records."""

import glob
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pipeline.foundation.artefacts import Record, Reference, record as records
from pipeline.foundation.artefacts.record import FILE
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.settings.paths import Paths, plain
from pipeline.judge.systems.requests import EmbedRequest
from pipeline.judge.systems.scores import layout
from pipeline.judge.systems.scores.system import KINDS
from pipeline.make.training.artefact import HeadFacts
from pipeline.make.training.request import TrainRequest

# The kinds of artefacts with a record of their own inputs.
SYSTEMS = (*KINDS, EmbedRequest.kind)
HEAD = TrainRequest.kind


class Link(NamedTuple):
    """An artefact, as the record of another one refers to it."""

    path: Path  # where the project has it; of photographs, their manifest
    kind: str
    # What the record says; None for the artefact with which a walk begins, if no record refers to
    # it.
    reference: Reference | None
    role: str = ""
    reader: Path | None = None  # the artefact whose record it is; None for results
    read_by: str = ""  # the kind of that artefact

    @property
    def is_needed(self) -> bool:
        """Whether its reader is worth nothing without it: a head is used without what it was
        trained from.
        """
        return self.read_by != HEAD or self.path.exists()


def behind(first: Sequence[Link], paths: Paths) -> list[Link]:
    """Find all links behind some, and these, each artefact before those that it was made from."""
    reached = list(first)
    read: set[Path] = set()
    for link in reached:  # which grows
        if link.path not in read:
            read.add(link.path)
            reached += inputs(link.path, paths)
    return reached


def needed(inputs: Iterable[Link], *kinds: str) -> list[Path]:
    """List the artefacts of some kinds among links, without what a head was trained from and is no
    longer there.
    """
    paths: dict[Path, None] = {}
    for link in inputs:
        if link.kind in kinds and link.is_needed:
            paths[link.path] = None
    return list(paths)


def inputs(path: Path, paths: Paths) -> list[Link]:
    """The links from an artefact's record; none if it has no readable record, which its own
    comparisons say.
    """
    try:
        return links(records.load(path), path, paths)
    except (OSError, ValueError, KeyError):
        return []


def links(record: Record, reader: Path, paths: Paths) -> list[Link]:
    """The links from a record that was read from the file or folder `reader`."""
    place = _Place.of(reader, record, paths)
    made_from = dict(record.made_from)
    if record.kind == HEAD and HeadFacts.model_validate(record.facts).own_network:
        made_from.pop("features", None)  # it reads photographs
    inputs = []
    with refusing(InputError, lambda error: f"{reader}: {error}"):
        for role, reference in made_from.items():
            path = place.find(reference)
            if path is not None:
                inputs.append(Link(path, reference.kind, reference, role, reader, record.kind))
    return inputs


def distractors(inputs: Iterable[Link]) -> list[Path]:
    """Those of some links that enlarge a pool, in their order."""
    return [link.path for link in inputs if link.role.startswith("distractor.")]


class _Place(NamedTuple):
    """Where the inputs of an artefact are."""

    folder: Path | None  # of heads beside a head
    paths: Paths
    dataset: str
    split: str
    trained_on: str  # the data set of its heads

    @classmethod
    def of(cls, path: Path, record: Record, paths: Paths) -> "_Place":
        if record.kind == HEAD:
            dataset = record.made_from["manifest"].name
            return cls(path.parent, paths, dataset, "", dataset)
        made = layout.facts_of(record)
        return cls(None, paths, made.dataset, str(made.split), made.training_data)

    def find(self, reference: Reference) -> Path | None:
        """Where an input is; None if it is no artefact of a project, such as a pretrained text
        encoder.
        """
        paths = self.paths
        name = reference.name
        if reference.kind == HEAD and self.folder:
            return self.folder / plain(name)
        if reference.kind == HEAD:
            return paths.head(self.trained_on, name)
        if reference.kind in KINDS:
            return paths.similarity(self.dataset, name, self.split)
        if reference.kind == EmbedRequest.kind:
            return _vectors(paths, self.dataset, reference)
        if reference.kind == "features":
            return paths.features(self.dataset, name)
        if reference.kind in ("manifest", "photographs"):
            return paths.manifest(name)
        return None


def _vectors(paths: Paths, dataset: str, reference: Reference) -> Path:
    """The embeddings of a reference, which may be distractors of another data set."""
    name = glob.escape(plain(reference.name))
    for file in paths.root.glob(f"embeddings/*/{name}.zarr/{FILE}"):
        if records.load(file.parent).identity == reference.identity:
            return file.parent
    return paths.encoded(dataset, reference.name)

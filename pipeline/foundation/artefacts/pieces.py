"""The results of single tasks, kept in files beside a store, so that an interrupted run resumes
where it stopped.

NAME.zarr.pieces/     removed once NAME.zarr is written
  record.json         what is computed
  00000.npz, …        the arrays of each task
"""

import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipeline.foundation.artefacts import record as records
from pipeline.foundation.artefacts.artefact import Artefact
from pipeline.foundation.artefacts.record import Record
from pipeline.foundation.compute.tasks import Executor, InProcess, Wanted
from pipeline.foundation.files import atomic
from pipeline.foundation.files.digest import digest
from pipeline.foundation.parts.errors import InputError

Arrays: TypeAlias = Mapping[str, np.ndarray]


class _Work(NamedTuple):
    function: Callable[[Any, Wanted], Arrays]
    task: Any
    number: int
    file: Path


def _keep(work: _Work, wanted: Wanted) -> int:
    """Run a task and write its arrays. They appear complete or not at all."""
    arrays = work.function(work.task, wanted)
    with atomic.replacing(work.file, durable=False) as partial, partial.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    return work.number


class KeptPieces:
    """The results of single tasks, kept beside a store until it is written."""

    # request: JSON values on which the results depend. refusal: the error's text if a folder has
    # results of another request; None to remove them.

    def __init__(self, store: Path, request: Mapping[str, Any], refusal: str | None = None) -> None:
        self.folder = store.with_name(store.name + ".pieces").absolute()
        wanted = Record(kind="pieces", request={"digest": digest(dict(request))})
        earlier = Artefact.existing(self.folder)
        if earlier and earlier.record.request == wanted.request:
            return
        if refusal is not None and any(self.folder.glob("*.npz")):
            raise InputError(f"{self.folder}: {refusal}")
        self.remove()
        records.save(self.folder, wanted)

    def missing(self, count: int) -> list[int]:
        """Find which of `count` tasks have no result, or a damaged one."""
        return [number for number in range(count) if self.read(number) is None]

    def run(
        self,
        function: Callable[[Any, Wanted], Arrays],
        tasks: Sequence[Any],
        executor: Executor | None,
        progress: Callable[[int, bool], object] = lambda number, before: None,
    ) -> Iterator[Arrays]:
        """Run the tasks whose results are missing, by default in this process, and read all, in the
        order of the tasks.

        `function` is as for `Executor.each`; `progress` gets each task's number and whether an
        earlier run did it.
        """
        missing = self.missing(len(tasks))
        for number in sorted({*range(len(tasks))} - {*missing}):
            progress(number, True)
        work = (_Work(function, tasks[number], number, self._file(number)) for number in missing)
        with closing((executor or InProcess()).each(_keep, work, self.folder)) as done:
            for number in done:
                progress(number, False)
        return self.all(len(tasks))

    def read(self, number: int) -> Arrays | None:
        """Read the arrays of a task; None if they are missing or damaged."""
        try:
            with np.load(self._file(number), allow_pickle=False) as arrays:
                return dict(arrays)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def remove(self) -> None:
        """Remove all results."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def all(self, count: int) -> Iterator[Arrays]:
        """Read the results of `count` tasks in their order; InputError if one was removed."""
        for number in range(count):
            piece = self.read(number)
            if piece is None:
                raise InputError(f"{self._file(number)}: was removed meanwhile; run again")
            yield piece

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:05}.npz"

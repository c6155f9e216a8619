"""Keep the results of tasks in files beside a store, so that a run that was cut goes on where it stopped.

    NAME.zarr.pieces/     gone once NAME.zarr is written
      request.json        a digest of what is computed
      00000.npz, …        the arrays of each task
"""

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipeline.compute.workers.executor import Executor, Wanted
from pipeline.files.atomic import replacing, write_text
from pipeline.files.digest import digest
from pipeline.parts.errors import InputError

Arrays: TypeAlias = Mapping[str, np.ndarray]


class _Work(NamedTuple):
    function: Callable[[Any, Wanted], Arrays]
    task: Any
    number: int
    file: Path


def _keep(work: _Work, wanted: Wanted) -> int:
    """Run a task and write its arrays. They appear complete or not at all."""
    arrays = work.function(work.task, wanted)
    with replacing(work.file) as partial, partial.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    return work.number


class KeptPieces:
    """The results of tasks that lie beside a store which is not finished. Those of another request are removed.

    Args:
        store: The store.
        request: JSON values on which the results depend.
    """

    def __init__(self, store: Path, request: Mapping[str, Any]) -> None:
        self.folder = store.with_name(store.name + ".pieces").absolute()
        said, asked = self.folder / "request.json", json.dumps({"request": digest(dict(request))})
        if not said.is_file() or said.read_text(encoding="utf-8") != asked:
            self.remove()
            write_text(said, asked)

    def run(self, function: Callable[[Any, Wanted], Arrays], tasks: Sequence[Any], executor: Executor,
            progress: Callable[[int, bool], object] = lambda number, before: None) -> Iterator[Arrays]:
        """Run the tasks whose results are missing, and read all.

        Args:
            function: A module's function of a task and of what tells whether its result is still wanted; it gives
                arrays by name.
            tasks: The tasks.
            executor: Where.
            progress: Called for each task with its number, and whether an earlier run did it.

        Returns:
            The results in the order of the tasks, each read when it is asked for.
        """
        missing = []
        for number in range(len(tasks)):
            if self.read(number) is None:
                missing.append(number)
            else:
                progress(number, True)
        work = (_Work(function, tasks[number], number, self._file(number)) for number in missing)
        with closing(executor.each(_keep, work, self.folder)) as done:
            for number in done:
                progress(number, False)
        return self.all(len(tasks))

    def read(self, number: int) -> Arrays | None:
        """Read the result of a task.

        Args:
            number: The task's number.

        Returns:
            Its arrays; None if they are not there or damaged.
        """
        try:
            with np.load(self._file(number), allow_pickle=False) as arrays:
                return dict(arrays)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def remove(self) -> None:
        """Remove all results."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def all(self, count: int) -> Iterator[Arrays]:
        """Read all results.

        Args:
            count: How many there are.

        Yields:
            The results in the order of the tasks.

        Raises:
            InputError: If one vanished meanwhile.
        """
        for number in range(count):
            found = self.read(number)
            if found is None:
                raise InputError(f"{self._file(number)}: was removed meanwhile; run again")
            yield found

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:05}.npz"

"""Where tasks run: this process, others of this machine, a dask cluster."""

from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

Result = TypeVar("Result")
# Tells a task whether its result is still wanted.
Wanted: TypeAlias = Callable[[], bool]


class Executor(Protocol):
    """Runs functions and tasks somewhere."""

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """The result of a picklable function of these arguments, called there."""

    def each(
        self,
        function: Callable[..., Result],
        tasks: Iterable[Any],
        folder: Path | None = None,
        common: bytes | None = None,
    ) -> Generator[Result, None, None]:
        """Call a function with each task there.

        Args:
            function: A function of a task and of a `Wanted`, defined at the top of a module.
            tasks: Tasks that can be pickled.
            folder: The existing folder into which they write; every worker must see it. None if
                they write no file.
            common: What all tasks need, sent once to each worker; it is then the function's first
                argument.

        Yields:
            The results, in any order.
        """


class InProcess:
    """Runs functions and tasks in this process."""

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function, see `Executor.call`."""
        return function(*arguments)

    def each(
        self,
        function: Callable[..., Result],
        tasks: Iterable[Any],
        folder: Path | None = None,
        common: bytes | None = None,
    ) -> Generator[Result, None, None]:
        """Call a function with each task, see `Executor.each`: results in the order of the
        tasks.
        """
        first = []
        if common is not None:
            first.append(common)
        yield from (function(*first, task, lambda: True) for task in tasks)

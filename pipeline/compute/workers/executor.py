"""Where tasks run: the interface, and this process."""

from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

Result = TypeVar("Result")
Wanted: TypeAlias = Callable[[], bool]
"""Tells a task whether its result is still wanted."""


class Executor(Protocol):
    """Runs functions and tasks somewhere."""

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function there.

        Args:
            function: Any function that can be pickled.
            *arguments: Its arguments.

        Returns:
            Its result.
        """
        ...

    def each(self, function: Callable[[Any, Wanted], Result], tasks: Iterable[Any], folder: Path
             ) -> Generator[Result, None, None]:
        """Call a function with each task there.

        Args:
            function: A module's function of a task and of what tells whether its result is still wanted.
            tasks: Tasks that can be pickled.
            folder: The folder in which they write, which is there; every worker must see it.

        Yields:
            The results, in any order.
        """
        ...


class InProcess:
    """Runs functions and tasks in this process."""

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function, see `Executor.call`.

        Args:
            function: The function.
            *arguments: Its arguments.

        Returns:
            Its result.
        """
        return function(*arguments)

    def each(self, function: Callable[[Any, Wanted], Result], tasks: Iterable[Any], folder: Path
             ) -> Generator[Result, None, None]:
        """Call a function with each task, see `Executor.each`.

        Args:
            function: The function.
            tasks: The tasks.
            folder: Not looked at: this process made it.

        Yields:
            The results, in the order of the tasks.
        """
        yield from (function(task, lambda: True) for task in tasks)

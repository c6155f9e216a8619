"""What is trained into a folder of its own, a head or a dual encoder, as far as the loop needs to
know.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pipeline.foundation.artefacts import Draft, Reference, Request, making
from pipeline.foundation.artefacts.making import IfChanged
from pipeline.foundation.manifest import Manifest, Split
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Learning, Length
from pipeline.make.training import checkpoint
from pipeline.make.training.artefact import BEST, CONTENTS, OPENED, HeadArtefact
from pipeline.make.training.processes import Processes


class Data(Protocol):
    """What a job reads, open."""

    @property
    def train(self) -> Split:
        """The pairs that it learns from."""

    @property
    def val(self) -> Split:
        """Those that select the best epoch."""

    @property
    def made_from(self) -> Mapping[str, Reference]:
        """Role -> artefact."""

    def notes(self) -> Iterable[str]:
        """The lines on val's captions that a user should read before the first step."""


Opened = TypeVar("Opened", bound=Data)


class Job(ABC, Generic[Opened]):
    """What is trained: from what, how, and where its files go."""

    manifest: Manifest  # images and captions
    recipe: Learning  # how weights are learned
    training: Length  # for how long, and where
    seed: int  # the seed of all random draws
    folder: Path  # where its files go
    if_changed: IfChanged  # whether another one in the folder is refused or replaced
    processes: Processes  # the processes that share a batch

    @property
    @abstractmethod
    def request(self) -> Request:
        """What is asked for."""

    @abstractmethod
    def open(self) -> Opened:
        """Open what it reads, and check that its parts can be built.

        Raises:
            InputError: If they cannot, or if the data lack what is asked for.
        """

    def check(self) -> None:
        """Compare the bytes that will be read with what was recorded, if it was; InputError if they
        have changed.
        """

    @abstractmethod
    def begin(self, draft: Draft, data: Opened) -> None:
        """Write into a draft, before the first step, the facts of the data that it reads, and what
        opens it later.
        """

    @property
    def policy(self) -> IfChanged:
        """Whether another one in the folder is refused or replaced, see `HeadArtefact.policy`."""
        return HeadArtefact.policy(self.folder, self.if_changed)

    @contextmanager
    def making(self, data: Opened) -> Iterator[Path]:
        """Yield the artefact's folder, after the bytes of the data were compared with what their
        stores recorded.

        Rank 0 makes it, and the other ranks only read it. An InputError if bytes have changed, if
        another run trains it, or if the processes see different data.
        """
        self.check()
        with ExitStack() as stack:
            folder = self.folder
            if self.processes.rank == 0:
                draft = stack.enter_context(self._draft(data))
                if draft is not None:
                    _forget_lost_epochs(draft.folder)
                    self.begin(draft, data)
                    folder = draft.folder
            ending = self.processes.shared(folder.name.removeprefix(self.folder.name))
            folder = self.folder.with_name(f"{self.folder.name}{ending}")
            self._require_same(folder, data)
            yield folder

    def _draft(self, data: Opened) -> AbstractContextManager[Draft | None]:
        where = self.training.model_dump(include={"device", "pieces", "processes"})
        return making(
            self.folder,
            self.request,
            data.made_from,
            where,
            if_changed=self.policy,
            resume=True,
        )

    def _require_same(self, folder: Path, data: Opened) -> None:
        """Check that all processes see the same data."""
        seen: dict[str, object] = {"finished epochs": checkpoint.state(folder).epochs}
        seen |= self.request.recorded()
        for role, reference in data.made_from.items():
            seen[role] = reference.identity
        differing = self.processes.differing(seen)
        if differing:
            raise InputError(
                f"{self.folder}: not all processes of the training see the same "
                f"{', '.join(differing)}; give all machines the same folders, and the same command"
            )


def _forget_lost_epochs(folder: Path) -> None:
    """Where the best epoch was lost, none is finished."""
    if not (folder / BEST).exists():
        for name in set(CONTENTS) - set(OPENED):
            (folder / name).unlink(missing_ok=True)

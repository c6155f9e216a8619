"""What a command's function takes besides names, paths and numbers: sources and workers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.foundation import parts
from pipeline.foundation.parts.errors import InputError

if TYPE_CHECKING:
    from pipeline.foundation.compute.tasks import Executor
    from pipeline.foundation.settings import Settings
    from pipeline.foundation.settings.paths import Paths


# What a folder of scores, vectors or a head holds.
HELD = ("zarr.json", ".zarray", ".zgroup", "best.safetensors", "*.npy", "*/*.npy")


def is_of_scores(root: Path, name: str) -> bool:
    """Whether a name is that of a file or folder of scores, vectors or a head. A model's folder
    leaves it a name.
    """
    place = root / name
    if not place.is_dir() or "/" in name:
        return place.exists()
    return any(any(place.glob(pattern)) for pattern in HELD)


def refuse_model(root: Path, name: str) -> None:
    """Check that a name is not that of a model's folder, whose kind was forgotten."""
    if (root / name / "config.json").is_file():
        raise InputError(
            f"{name}: is the folder of a model; write its kind before it, such as clip:{name}"
        )


def is_name(text: str) -> bool:
    """Whether a text can be a system's name."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", text) is not None


class Source:
    """What --system names: a system or head by its name, a file or folder, or a pretrained
    encoder.
    """

    def __init__(self, named: str, root: Path = Path()) -> None:
        self.named = named
        self._root = root
        if "/" in named:
            refuse_model(root, named)

    @property
    def is_encoder(self) -> bool:
        return ":" in self.named and self.path is None

    def refuse_encoder(self, dataset: str) -> None:
        """Refuse an encoder where its stored vectors are meant."""
        if self.is_encoder:
            raise InputError(
                f"--system {self.named}: `pipeline embed {dataset} --system {self.named}` makes its "
                "vectors; then give the name of their store. One with a vector for every token has none: "
                f"`pipeline evaluate {self.named}` measures it"
            )

    @property
    def called(self) -> str:
        """The name of an encoder that is not given one: the last part of its place; of a checkpoint
        also its run.

        Its kind where that part has no letter or digit that names may have.
        """
        kind, _, text = self.named.partition(":")
        place = Path(text)
        name = place.name.removesuffix(".pt")
        if place.parent.name == "checkpoints":
            name = f"{place.parent.parent.name}-{name}"
        return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") or kind

    @property
    def path(self) -> Path | None:
        place = Path(self.named)
        is_file_name = place.suffix in (".npy", ".zarr")
        is_below_folder = len(place.parts) > 1 and ":" not in self.named
        if is_file_name or is_below_folder or is_of_scores(self._root, self.named):
            return self._root / place
        return None

    @property
    def head(self) -> Path | None:
        """The folder of a head, such as one that was copied from elsewhere; None for anything
        else.
        """
        folder = self._root / self.named
        if (folder / "best.safetensors").is_file():
            return folder
        return None

    def scores(self, paths: Paths, settings: Settings) -> Path:
        """The file of scores: the named file, or the store of the run's system of that name."""
        return self.path or paths.similarity(settings.run.dataset, self.named, settings.score.split)


class Workers(NamedTuple):
    """Where tasks run: in this process, in several of this machine, or on a dask cluster."""

    processes: int = 1
    scheduler: str | None = None

    @contextmanager
    def open(self) -> Iterator[Executor | None]:
        if self == Workers():
            yield None
            return
        parts.extras.require("cluster", "work in several processes")
        from pipeline.foundation.compute import cluster

        with (
            cluster.local(self.processes)
            if self.scheduler is None
            else cluster.running(self.scheduler) as executor
        ):
            yield executor


def refuse_given(why: str, **given: object) -> None:
    """Check that options that have no effect here are not given. why: the message after the
    option.
    """
    for name, value in given.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')} {why}")


def refuse_repeats(paths: Iterable[Path]) -> None:
    """Check that no scores are named twice: they would count twice."""
    seen = set()
    for place in paths:
        if place.resolve() in seen:
            raise InputError(f"{place}: is named twice; name each once")
        seen.add(place.resolve())

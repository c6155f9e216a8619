"""A head's files. Each is written completely or not at all, and none is a pickle.

HEAD/
  record.json         what the head is: its request, what it was made from, digests of the files
                      below; and, never compared, the machines that trained it, one after another;
                      see `pipeline.make.training.artefact`
  text/               the words it knows: vocabulary.json, or BERT's tokenizer and configuration
  last.safetensors    network, optimizer and history after the last finished epoch: training resumes
                      here
  best.safetensors    the network of the epoch that is best on val
  history.csv         a row per epoch, counted from 1: loss, negatives, val recalls
  steps.csv           a row per step, or if these are more than ROWS, the means of `averaged` steps
                      up to `step` of the epoch, both counted from 1: number of trained steps, loss,
                      what the objective logs (AdOpt: K and both γ), similarities, gradient
"""

from __future__ import annotations

import csv
import errno
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

from safetensors import SafetensorError, safe_open

from pipeline.foundation.files import regular
from pipeline.foundation.files.atomic import replacing, write_text
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.parts.errors import InputError, refusing

if TYPE_CHECKING:
    import torch

Tensors: TypeAlias = "dict[str, torch.Tensor]"
# the most of steps.csv, plus one per epoch: 0.6 MB; on COCO a row for each step took 17 MB
ROWS = 4000


@dataclass
class State:
    """How far training has come."""

    history: list[dict[str, float]] = field(default_factory=list)  # A row for each finished epoch
    stuck: int = 0  # as in `divergence.Watch`
    scaler: dict[str, Any] = field(default_factory=dict)  # as in `optimizer.TrainingPrecision`

    @property
    def epochs(self) -> int:
        """The number of finished epochs."""
        return len(self.history)

    @property
    def best(self) -> int:
        """The epoch (from 1) with the highest RSUM on val, the earliest of equals; 0 before the
        first.
        """
        best = 0
        for epoch in range(1, self.epochs + 1):
            if not best or self._rsum(epoch) > self._rsum(best):
                best = epoch
        return best

    def _rsum(self, epoch: int) -> float:
        return self.history[epoch - 1]["RSUM"]


def save_tensors(
    path: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, Any]
) -> None:
    """Write tensors and JSON metadata as one safetensors file, which replaces an older one in one
    step.
    """
    from safetensors.torch import save_file

    on_cpu = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    # Under one key: safetensors writes several keys in random order, and equal heads must give
    # equal files.
    described = {"json": json.dumps(dict(metadata))}
    with replacing(path) as partial:
        try:
            save_file(on_cpu, partial, metadata=described)
        except SafetensorError as error:
            raise _of_system(error, path) from None


def _of_system(error: SafetensorError, path: Path) -> OSError:
    """The error of the operating system, whose number only the text has."""
    match = re.search(r"(?:os error|code:) (\d+)", str(error))
    if match is None:
        return OSError(errno.EIO, str(error), os.fspath(path))
    number = int(match[1])
    return OSError(number, os.strerror(number), os.fspath(path))


def load_tensors(path: Path) -> tuple[Tensors, dict[str, Any]]:
    """Read what `save_tensors` wrote."""
    with _opened(path) as file:
        return {name: file.get_tensor(name) for name in file.keys()}, _metadata(file)  # noqa: SIM118 (not a dict)


def require_fit(model: torch.nn.Module, file: Path, unfit: str) -> None:
    """Compare names and shapes of a network's tensors with those of a file, of which none is read;
    InputError with the message `unfit` if they differ.
    """
    with _opened(file) as opened:
        stored = {name: opened.get_slice(name).get_shape() for name in opened.keys()}  # noqa: SIM118 (not a dict)
    wanted = {name: [*values.shape] for name, values in model.state_dict().items()}
    if stored != wanted:
        raise InputError(unfit)


def fill(model: torch.nn.Module, file: Path, unfit: str) -> None:
    """Load the tensors of a file into a network.

    Raises:
        InputError: If they do not fit, with the message `unfit`; or if a value is not finite.
    """
    tensors, _ = load_tensors(file)
    with refusing(RuntimeError, unfit):
        model.load_state_dict(tensors)
    for name, values in tensors.items():
        if not values.isfinite().all():
            raise InputError(
                f"{file}: its tensor {name} holds values that are not finite; put the file back, or "
                "train again"
            )


def state(folder: Path) -> State:
    """Read how far the training of a head has come, without its tensors."""
    if not (folder / "last.safetensors").exists():
        return State()
    with _opened(folder / "last.safetensors", "numpy") as file:
        return State(**_metadata(file))


@contextmanager
def _opened(path: Path, framework: str = "pt") -> Iterator[Any]:
    with (
        refusing(
            (SafetensorError, ValueError, TypeError, OSError),
            lambda error: (
                f"{path}: not a readable checkpoint: {error}; delete its folder and train again"
            ),
        ),
        refusing(
            FileNotFoundError, f"{path}: no checkpoint there; train the head with `pipeline train`"
        ),
    ):
        regular.require(path)
        with safe_open(path, framework=framework) as file:
            yield file


def _metadata(file: Any) -> dict[str, Any]:
    described = file.metadata() or {}
    metadata: dict[str, Any] = from_json(described.get("json", "{}"))
    return metadata


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Tensors) -> None:
    """Restore what `optimizer_tensors` collected, with the memory layout of the weights."""
    state: dict[int, Tensors] = {}
    for key, value in tensors.items():
        if key.startswith("optimizer."):
            _, number, name = key.split(".")
            state.setdefault(int(number), {})[name] = value
    if len({frozenset(fields) for fields in state.values()}) > 1:
        raise KeyError("optimizer")
    whole = optimizer.state_dict()
    optimizer.load_state_dict({**whole, "state": state})
    # Files hold tensors row by row; torch's fused optimizers go through memory in the weight's
    # order, which may be channels last.
    for weight, fields in optimizer.state.items():
        for name, value in fields.items():
            if value.shape == weight.shape:
                fields[name] = _laid_out_as(weight, value)


def _laid_out_as(weight: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A copy of a value in the order that a weight has in memory."""
    import torch

    copy = torch.empty_like(weight, dtype=value.dtype, device=value.device)
    return copy.copy_(value)


def save(
    folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, reached: State
) -> None:
    """Save a finished epoch: best before last, so that a run interrupted between the two makes the
    same best again.
    """
    import torch

    weights = model.state_dict()
    if reached.best == reached.epochs:
        save_tensors(folder / "best.safetensors", weights, {"epoch": reached.best})
    tensors = {f"model.{name}": value for name, value in weights.items()}
    for number, fields in optimizer.state_dict()["state"].items():
        for name, value in fields.items():
            tensors[f"optimizer.{number}.{name}"] = torch.as_tensor(value)
    save_tensors(folder / "last.safetensors", tensors, asdict(reached))
    write_history(folder, reached)


def restore(folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> State:
    """Restore the last finished epoch, if there is one."""
    file = folder / "last.safetensors"
    if not file.exists():
        return State()
    tensors, _ = load_tensors(file)
    weights = {}
    for name, value in tensors.items():
        if name.startswith("model."):
            weights[name.removeprefix("model.")] = value
    with refusing(
        (RuntimeError, ValueError, KeyError),
        f"{folder}/last.safetensors: does not hold all of the head; "
        "delete the folder and train again",
    ):
        model.load_state_dict(weights)
        restore_optimizer(optimizer, tensors)
    return state(folder)


def write_history(folder: Path, reached: State) -> None:
    """Write history.csv."""
    write_text(folder / "history.csv", "\n".join([*_csv(reached.history), ""]))


def _csv(rows: Sequence[Mapping[str, float | str]]) -> list[str]:
    """The lines of a table, its header first; a number that is missing or NaN is an empty cell,
    text is as it was.
    """
    columns = _names(rows)
    lines = [",".join(columns)]
    for row in rows:
        cells = [_cell(row.get(column, "")) for column in columns]
        lines.append(",".join(cells))
    return lines


def _names(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names of all rows' values, each once, in order."""
    return list(dict.fromkeys(chain.from_iterable(rows)))


def _cell(value: float | str) -> str:
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return ""
    return repr(value)


def _means(logs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each number over the steps that log it."""
    means = {}
    for name in _names(logs):
        means[name] = fmean(log[name] for log in logs if name in log)
    return means


def write_steps(folder: Path, epoch: int, epochs: int, logs: Sequence[Mapping[str, float]]) -> None:
    """Write steps.csv: the rows that it has of earlier epochs, then this epoch's, counted from
    1.
    """
    together = math.ceil(epochs * len(logs) / ROWS)
    trained = (epoch - 1) * len(logs)
    path = folder / "steps.csv"
    rows: list[Mapping[str, float | str]] = [*_steps_before(path, epoch)]
    for first in range(0, len(logs), together):
        part = logs[first : first + together]
        step = first + len(part)
        row: dict[str, float] = {
            "epoch": epoch,
            "step": step,
            "steps": trained + step,
            "averaged": len(part),
        }
        rows.append(row | _means(part))
    write_text(path, "\n".join([*_csv(rows), ""]))


def _steps_before(path: Path, epoch: int) -> Iterator[dict[str, str]]:
    """The whole rows that steps.csv has of epochs before this one."""
    if not path.exists():
        return
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for row in csv.DictReader(lines):
        if None in {*row, *row.values()}:
            continue
        number = row.get("epoch", "")
        if number.isdecimal() and int(number) < epoch:
            yield row


def summary(folder: Path) -> str:
    """The best epoch, number of epochs and RSUM on val of the finished head in a folder."""
    reached = state(folder)
    best = reached.best
    rsum = reached.history[best - 1]["RSUM"]
    return f"best epoch {best} of {reached.epochs}, val RSUM {rsum:.1f}"

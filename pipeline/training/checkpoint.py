"""A head's files. Each is written completely or not at all, and none is a pickle.

HEAD/
  record.json         what the head is: its request, what it was made from, digests of the files
                      below; and, never compared, the machines that trained it, one after another;
                      see `pipeline.training.artefact`
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

from safetensors import SafetensorError, safe_open

from pipeline.files import regular
from pipeline.files.atomic import replacing, write_text
from pipeline.files.parsing import from_json
from pipeline.parts.errors import InputError, refusing

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
        return max(
            range(1, self.epochs + 1),
            key=lambda epoch: (self.history[epoch - 1]["RSUM"], -epoch),
            default=0,
        )


def save_tensors(
    path: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, Any]
) -> None:
    """Write tensors and JSON metadata as one safetensors file, which replaces an older one in one
    step.
    """
    from safetensors.torch import save_file

    with replacing(path) as partial:
        try:
            # Under one key: safetensors writes several keys in random order, and equal heads must
            # give equal files.
            save_file(
                {name: value.detach().cpu().contiguous() for name, value in tensors.items()},
                partial,
                metadata={"json": json.dumps(dict(metadata))},
            )
        except SafetensorError as error:
            system = re.search(
                r"(?:os error|code:) (\d+)", str(error)
            )  # only the text has the error's number
            number = int(system[1]) if system else errno.EIO
            raise OSError(
                number, os.strerror(number) if system else str(error), os.fspath(path)
            ) from None


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
    if stored != {name: [*values.shape] for name, values in model.state_dict().items()}:
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
    metadata: dict[str, Any] = from_json((file.metadata() or {}).get("json", "{}"))
    return metadata


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Tensors) -> None:
    """Restore what `optimizer_tensors` collected, with the memory layout of the weights."""
    import torch

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
                fields[name] = torch.empty_like(
                    weight, dtype=value.dtype, device=value.device
                ).copy_(value)


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
    tensors = {f"model.{name}": value for name, value in weights.items()} | {
        f"optimizer.{number}.{name}": torch.as_tensor(value)
        for number, fields in optimizer.state_dict()["state"].items()
        for name, value in fields.items()
    }
    save_tensors(folder / "last.safetensors", tensors, asdict(reached))
    write_history(folder, reached)


def restore(folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> State:
    """Restore the last finished epoch, if there is one."""
    if not (folder / "last.safetensors").exists():
        return State()
    tensors, _ = load_tensors(folder / "last.safetensors")
    with refusing(
        (RuntimeError, ValueError, KeyError),
        f"{folder}/last.safetensors: does not hold all of the head; "
        "delete the folder and train again",
    ):
        model.load_state_dict(
            {
                name.removeprefix("model."): value
                for name, value in tensors.items()
                if name.startswith("model.")
            }
        )
        restore_optimizer(optimizer, tensors)
    return state(folder)


def write_history(folder: Path, reached: State) -> None:
    """Write history.csv."""
    write_text(folder / "history.csv", "\n".join([*_csv(reached.history), ""]))


def _csv(rows: Sequence[Mapping[str, float | str]]) -> list[str]:
    """The lines of a table, its header first; a number that is missing or NaN is an empty cell,
    text is as it was.
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return [
        ",".join(columns),
        *(",".join(_cell(row.get(column, "")) for column in columns) for row in rows),
    ]


def _cell(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return "" if math.isnan(value) else repr(value)


def _means(logs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each number over the steps that log it."""
    names = dict.fromkeys(name for log in logs for name in log)
    return {name: fmean(log[name] for log in logs if name in log) for name in names}


def write_steps(folder: Path, epoch: int, epochs: int, logs: Sequence[Mapping[str, float]]) -> None:
    """Write steps.csv: the rows that it has of earlier epochs, then this epoch's, counted from
    1.
    """
    together, trained = -(-epochs * len(logs) // ROWS), (epoch - 1) * len(logs)
    parts = {first: logs[first : first + together] for first in range(0, len(logs), together)}
    rows = [
        {
            "epoch": epoch,
            "step": first + len(part),
            "steps": trained + first + len(part),
            "averaged": len(part),
            **_means(part),
        }
        for first, part in parts.items()
    ]
    path = folder / "steps.csv"
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
    whole = (row for row in csv.DictReader(lines) if None not in {*row, *row.values()})
    earlier = [
        row for row in whole if (number := row.get("epoch", "")).isdecimal() and int(number) < epoch
    ]
    write_text(path, "\n".join([*_csv([*earlier, *rows]), ""]))


def summary(folder: Path) -> str:
    """The best epoch, number of epochs and RSUM on val of the finished head in a folder."""
    reached = state(folder)
    return f"best epoch {reached.best} of {reached.epochs}, val RSUM {reached.history[reached.best - 1]['RSUM']:.1f}"
